"""An OPC UA server of asyncua as a program: `python opcua_program.py '{"port": 4840, "control": 4841}'`.

It does what it is told on its second port, which a test talks to: each line is a Python expression,
as a JSON string, and is answered by its value as JSON; what is awaitable is awaited. In reach are
`server`, `plant` and its methods, `ua`, `asyncio`, `datetime` and `UTC`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asyncua import Server, ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.internal_session import InternalSession
from asyncua.server.uaprocessor import UaProcessor
from asyncua.server.user_managers import UserManager
from asyncua.ua.ua_binary import struct_to_binary

from headrace.compiler.clock import Clock

NAMESPACE = 2


class Users(UserManager):
    """Lets in who knows the password."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known

    def get_user(
        self, iserver: Any, username: Any = None, password: Any = None, certificate: Any = None
    ) -> User | None:
        if not self.known:
            return User(role=UserRole.Admin)
        is_known = username in self.known and self.known[username] == password
        return User(role=UserRole.User, name=username) if is_known else None


class Plant:
    """A server with nodes of our own."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        users = options.get("users", {})
        self.server = Server(user_manager=Users(users))
        self.added: list[str] = []
        self.asked: list[Any] = []
        """What clients have asked for: sessions, subscriptions, monitored items."""

    def _record(self) -> None:
        """Keep the parameters of what clients create."""
        service = self.server.iserver.subscription_service
        for owner, name in [
            (InternalSession, "create_session"),
            (service, "create_subscription"),
            (service, "create_monitored_items"),
        ]:
            setattr(owner, name, self._recording(getattr(owner, name)))

    def _recording(self, does: Any) -> Any:
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            self.asked += [each for each in arguments if type(each).__name__.startswith("Create")]
            return does(*arguments, **keywords)

        return recorded

    async def open(self) -> None:
        """Prepare everything but the port."""
        server, options = self.server, self.options
        await server.init()
        self._record()
        server.set_endpoint(f"opc.tcp://127.0.0.1:{options['port']}{options.get('path', '/')}")
        policies = options.get("policies", ["NoSecurity"])
        server.set_security_policy([getattr(ua.SecurityPolicyType, each) for each in policies])
        users = ua.UserNameIdentityToken if options.get("users") else ua.AnonymousIdentityToken
        server.set_identity_tokens([users])
        if options.get("certificate"):
            await server.set_application_uri(options["application_uri"])
            await server.load_certificate(options["certificate"])
            await server.load_private_key(options["private_key"])
        if options.get("trusts"):
            self._trust(options["trusts"])
        await server.register_namespace("urn:plant")
        plant = await server.nodes.objects.add_folder(ua.NodeId("Plant", NAMESPACE), "2:Plant")
        line = await plant.add_object(ua.NodeId("Line", NAMESPACE), "2:Line")
        cell = await line.add_object(ua.NodeId("Cell", NAMESPACE), "2:Cell")
        await self.add("Speed", 1.5, plant)
        temp = await self.add("Temp", 20.0, line)
        await temp.add_property(ua.NodeId("Temp.Unit", NAMESPACE), "2:Unit", "degC")
        await self.add("Deep", 3, cell)
        await cell.add_reference(plant, ua.ObjectIds.Organizes)  # and round again

    def _trust(self, file: str) -> None:
        trusted = Path(file).read_bytes()

        async def validate(certificate: Any, description: Any) -> None:
            if certificate.public_bytes(_encoding()) != trusted:
                raise ua.uaerrors.BadCertificateUntrusted

        self.server.set_certificate_validator(validate)

    async def add(self, name: str, value: Any, parent: Any = None, kind: str | None = None) -> Any:
        """Add a variable `ns=2;s=<name>`."""
        where = parent or self.server.nodes.objects
        vtype = None if kind is None else getattr(ua.VariantType, kind)
        self.added.append(name)
        return await where.add_variable(
            ua.NodeId(name, NAMESPACE), f"2:{name}", value, varianttype=vtype
        )

    async def add_many(self, count: int, folder: str = "Many", prefix: str = "N") -> int:
        """Add variables `ns=2;s=N0` and on in a folder."""
        await self.folder(folder)
        for n in range(count):
            await self.add(f"{prefix}{n}", 0.0, self.node(folder))
        return count

    async def write(
        self, name: str, value: Any = None, kind: str | None = None, **more: Any
    ) -> None:
        """Set a value with its type, status and timestamps."""
        now = datetime.now(UTC)
        variant = value if isinstance(value, ua.Variant) else None
        if variant is None:
            vtype = None if kind is None else getattr(ua.VariantType, kind)
            variant = ua.Variant(value, vtype) if vtype is not None else ua.Variant(value)
        status = more.pop("status", 0)
        found = ua.DataValue(
            variant,
            ua.StatusCode(ua.UInt32(status)),
            more.pop("source", now),
            more.pop("server", now),
        )
        await self.server.write_attribute_value(ua.NodeId(name, NAMESPACE), found)

    async def change(self, count: int, rounds: int, seconds: float, prefix: str = "N") -> int:
        """Change `N0` and on so many times, in so many seconds each; return how many changes that were."""
        clock = Clock(asyncio.get_running_loop())
        for n in range(rounds):
            began = clock.monotonic()
            for place in range(count):
                await self.write(f"{prefix}{place}", n + 1.0)
            await clock.sleep(max(0.0, began + seconds - clock.monotonic()))
        return count * rounds

    async def folder(self, name: str) -> None:
        """Add a folder `ns=2;s=<name>`."""
        await self.server.nodes.objects.add_folder(ua.NodeId(name, NAMESPACE), f"2:{name}")

    def node(self, name: str) -> Any:
        """Return a node by its name."""
        return self.server.get_node(ua.NodeId(name, NAMESPACE))

    def clients(self) -> list[Any]:
        """Return the connections that there are."""
        return self.server.bserver.clients

    def hang_up(self) -> None:
        """Cut all connections."""
        for transport in list(self.server.iserver.asyncio_transports):
            transport.abort()

    def say(self, octets: bytes) -> None:
        """Send octets to all clients, whatever they mean."""
        for transport in self.server.iserver.asyncio_transports:
            transport.write(octets)

    def forget(self) -> None:
        """Know no session any more, for whoever reads in one."""

        async def unknown(_: Any) -> None:
            raise ServiceError(ua.StatusCodes.BadSessionIdInvalid)

        for session in self.server.iserver._external_sessions.values():
            session.read = unknown

    def time_out(self) -> None:
        """Answer the publish requests that wait: they are too old."""
        for client in self.clients():
            while client.processor._publish_requests:
                client.processor._send_publish_request_timeout(
                    client.processor._publish_requests.popleft()
                )

    def take_one(self) -> None:
        """Let no more than one publish request of a session wait from now on."""
        UaProcessor.publish_request_limit = lambda *_: 1

    def disown(self, name: str) -> None:
        """Say of a node, whoever browses, that it is one of another server."""

        def disowned(results: list[Any]) -> None:
            for reference in (each for result in results for each in result.References):
                found = reference.NodeId
                if found.Identifier == name:
                    reference.NodeId = ua.ExpandedNodeId(
                        found.Identifier, found.NamespaceIndex, found.NodeIdType, None, 1
                    )

        self._change_browsing(disowned)

    def browse_few(self, most: int) -> None:
        """Answer for so many nodes of those that are browsed at once; for others there is no room."""

        def refused(results: list[Any]) -> None:
            for result in results[most:]:
                result.StatusCode = ua.StatusCode(ua.UInt32(ua.StatusCodes.BadNoContinuationPoints))
                result.References = []

        self._change_browsing(refused)

    def count_browsed(self) -> None:
        """Note how many nodes are browsed at once, in `browsed`."""
        self.browsed: list[int] = []
        self._change_browsing(lambda results: self.browsed.append(len(results)))

    def _change_browsing(self, change: Any) -> None:
        views = self.server.iserver.view_service
        browse = views.browse

        def changed(*arguments: Any) -> Any:
            results = browse(*arguments)
            change(results)
            return results

        views.browse = changed

    def skip_numbers(self, count: int) -> None:
        """Leave out numbers of notifications, as if they had been sent and forgotten."""
        for each in self.subscriptions():
            each._notification_seq += count

    def swallow(self) -> None:
        """Send a sign of life with the next number in place of the next notification."""

        def swallowed(response: Any) -> bytes:
            number = response.Parameters.NotificationMessage.SequenceNumber
            sign = ua.NotificationMessage(SequenceNumber=number + 1)
            number = response.Parameters.SubscriptionId
            parameters = ua.PublishResult(number, NotificationMessage=sign)
            header = response.ResponseHeader
            return struct_to_binary(
                ua.PublishResponse(ResponseHeader=header, Parameters=parameters)
            )

        self._distort(swallowed)

    def garble(self) -> None:
        """Send the next notification without its end."""
        self._distort(lambda response: struct_to_binary(response)[:-30])

    def _distort(self, encoded: Any) -> None:
        """Have the next notification encoded in another way."""
        send = UaProcessor.send_response

        def sent(processor: Any, handle: int, head: Any, response: Any, *rest: Any) -> None:
            if processor._transport.is_closing() or not _is_notification(response):
                return send(processor, handle, head, response, *rest)
            UaProcessor.send_response = send
            response.ResponseHeader.RequestHandle = handle
            octets = encoded(response)
            message = processor._connection.message_to_binary(octets, request_id=head.RequestId)
            return processor._transport.write(message)

        UaProcessor.send_response = sent

    def subscriptions(self) -> list[Any]:
        """Return the subscriptions of all sessions."""
        return list(self.server.iserver.subscription_service.subscriptions.values())


def _is_notification(response: Any) -> bool:
    is_answer = isinstance(response, ua.PublishResponse)
    return is_answer and bool(response.Parameters.NotificationMessage.NotificationData)


def _encoding() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.DER


async def main() -> None:
    """Serve until the process is ended."""
    options = json.loads(sys.argv[1])
    logging.disable(logging.CRITICAL)
    plant = Plant(options)
    await plant.open()
    reach = {
        "ua": ua,
        "asyncio": asyncio,
        "datetime": datetime,
        "UTC": UTC,
        "server": plant.server,
        "plant": plant,
        "add": plant.add,
        "add_many": plant.add_many,
        "write": plant.write,
        "change": plant.change,
        "subscriptions": plant.subscriptions,
    }

    async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                value = eval(json.loads(line), reach)
                answer = {"value": await value if inspect.isawaitable(value) else value}
                text = json.dumps(answer, default=str)
            except Exception as cause:
                text = json.dumps({"raised": repr(cause)})
            writer.write(text.encode() + b"\n")
        writer.close()

    control = await asyncio.start_server(told, "127.0.0.1", options["control"], limit=2**24)
    async with plant.server, control:
        print("ready", flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
