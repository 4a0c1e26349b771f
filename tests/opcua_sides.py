"""Our side of OPC UA as a part of a test: the input over a server, and what it yields."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headrace.connectors.opcua import OpcuaConnection, OpcuaInput
from headrace.connectors.opcua.connection import Limits
from headrace.connectors.opcua.source import OpcuaSource
from tests.clients import PATIENCE
from tests.connected import Reader
from tests.doubles import StubContext
from tests.services.opcua import NodeOpcua, Opcua

Message = dict[str, Any]
SOON_MS = 50
"""How often the servers of the tests are asked to send, so that no test takes a second."""


def context(
    server: Opcua | NodeOpcua | str, base: Path | None = None, **options: Any
) -> StubContext:
    """Return a context that has a connection 'plc'."""
    url = server if isinstance(server, str) else server.url
    secrets = {"URL": url, "PASSWORD": options.get("password", "")}
    if "password" in options:
        options["password"] = "${PASSWORD}"
    filed = OpcuaConnection.load({"endpoint": "${URL}", **options})
    return StubContext(connections={"plc": filed}, secrets=secrets, base=base)


def source(
    ctx: StubContext, *nodes: str | Message, limits: Limits | None = None, **options: Any
) -> OpcuaSource:
    """Return a built input of nodes; a plain text is a node in namespace 2."""
    listed = [{"node_id": f"ns=2;s={each}"} if isinstance(each, str) else each for each in nodes]
    document = {
        "connection": "plc",
        "nodes": listed,
        "max_batch": 1000,
        "publish_interval_ms": SOON_MS,
        **options,
    }
    built = OpcuaInput.load(document).source(ctx, limits)
    assert isinstance(built, OpcuaSource)
    return built


async def batches(reader: Reader) -> list[list[Message]]:
    """Return the next batches, without their origins."""
    async with asyncio.timeout(PATIENCE):
        return [batch for batch, _ in await anext(reader)]


async def changes(reader: Reader, count: int) -> list[Message]:
    """Return the next messages, at least so many."""
    found: list[Message] = []
    while len(found) < count:
        for batch in await batches(reader):
            found += batch
    return found


async def values(reader: Reader, count: int) -> list[Any]:
    """Return the values of the next messages."""
    return [message["value"] for message in await changes(reader, count)]


async def told(server: Opcua, *expressions: str) -> None:
    """Have the server do things while the loop goes on."""
    for expression in expressions:
        await asyncio.to_thread(server.tell, expression)
