"""A field device with variables that change when they are told to: ``python -m bench.device PORT NODES``.

It has so many variables for each route (`node_ids`). A line ``ROUTE TIMES`` changes those of that route so
many times each, and is answered when it is done.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime

from asyncua import Server, ua

from bench.load import HOST
from bench.traffic import ROUTES

NAMESPACE = "urn:headrace:bench"


def url(port: int) -> str:
    """Return the address of a device."""
    return f"opc.tcp://{HOST}:{port}/"


def node_ids(route: str, nodes: int) -> list[str]:
    """Return the ids of the variables of a route."""
    return [f"ns=2;s={route}.{number:04}" for number in range(nodes)]


class Device:
    """The variables, by route."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._variables: dict[str, list[ua.NodeId]] = {}
        self._value = 0.0

    async def make(self, nodes: int) -> None:
        """Make so many variables for each route."""
        for route in ROUTES:
            ids = self._variables[route] = [*map(ua.NodeId.from_string, node_ids(route, nodes))]
            folder = await self._server.nodes.objects.add_folder(ua.NodeId(route, 2), f"2:{route}")
            for each in ids:
                await folder.add_variable(each, f"2:{each.Identifier}", 0.0)

    async def change(self, route: str, times: int) -> None:
        """Give each of them so many new values."""
        for _ in range(times):
            self._value += 0.25
            now = datetime.now(UTC)
            value = ua.DataValue(
                ua.Variant(self._value, ua.VariantType.Double), SourceTimestamp=now
            )
            for each in self._variables[route]:
                await self._server.write_attribute_value(each, value)
            await asyncio.sleep(0)  # a session has its turn: all of it is in this process


async def _run(port: int, nodes: int) -> None:
    server = Server()
    await server.init()
    server.set_endpoint(url(port))
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace(NAMESPACE)
    device = Device(server)
    await device.make(nodes)
    async with server:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            route, times = line.split()
            await device.change(route, int(times))
            print("done", flush=True)


def main(port: str, nodes: str) -> None:
    """Carry out what is asked for until nobody asks any more."""
    logging.disable(logging.ERROR)
    asyncio.run(_run(int(port), int(nodes)))


if __name__ == "__main__":
    main(*sys.argv[1:])
