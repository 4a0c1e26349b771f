"""A Kafka broker of hearsay: it tells of a cluster whatever a test wants, and does nothing else."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

Address = tuple[str, int]

METADATA, COORDINATOR, VERSIONS = 3, 10, 18


@dataclass
class Hearsay:
    """Every topic has a partition for each of ``leaders``; None as an address is its own."""

    brokers: dict[int, Address | None]
    leaders: Sequence[int] = (1,)
    coordinator: Address | None = None
    knows_topics: bool = True
    port: int = 0

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what one client asks."""
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                kind, _, number, name = struct.unpack_from(
                    ">hhih", request := await reader.readexactly(size)
                )
                answer = struct.pack(">i", number) + self._answer(kind, request[10 + name :])
                writer.write(struct.pack(">i", len(answer)) + answer)
        except asyncio.IncompleteReadError:
            writer.close()

    def _answer(self, kind: int, request: bytes) -> bytes:
        if kind == VERSIONS:
            known = [struct.pack(">hhh", each, 0, 0) for each in (METADATA, COORDINATOR, VERSIONS)]
            return struct.pack(">h", 0) + _array(known)
        if kind == COORDINATOR:
            return struct.pack(">hi", 0, 9) + self._place(self.coordinator)
        brokers = [struct.pack(">i", n) + self._place(at) for n, at in self.brokers.items()]
        topics = self._topics(request) if self.knows_topics else []
        return _array(brokers) + _array(topics)

    def _topics(self, request: bytes) -> list[bytes]:
        nobody = _array([])
        partitions = _array(
            [struct.pack(">hii", 0, n, each) + nobody * 2 for n, each in enumerate(self.leaders)]
        )
        (count,) = struct.unpack_from(">i", request)
        return [struct.pack(">h", 0) + request[4:] + partitions] if count == 1 else []

    def _place(self, address: Address | None) -> bytes:
        host, port = address or ("127.0.0.1", self.port)
        return struct.pack(">h", len(host)) + host.encode() + struct.pack(">i", port)


@asynccontextmanager
async def telling(hearsay: Hearsay) -> AsyncIterator[Hearsay]:
    """Run one."""
    server = await asyncio.start_server(hearsay.serve, "127.0.0.1", 0)
    hearsay.port = server.sockets[0].getsockname()[1]
    async with server:
        yield hearsay


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)
