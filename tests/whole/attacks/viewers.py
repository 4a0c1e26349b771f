"""Many who watch: a process that holds event streams open, reads all of them, and counts.

``python -m tests.whole.attacks.viewers PORT COUNT``: it prints a line when all are open, and when its
input ends, how many events came and how many times it was told that some are missing.
"""

from __future__ import annotations

import asyncio
import sys


class Viewer(asyncio.Protocol):
    """One stream."""

    events = 0
    lags = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for it."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        """Count what comes."""
        Viewer.events += data.count(b"data: {")
        Viewer.lags += data.count(b"event: lagged")


async def watch(port: int, count: int) -> None:
    """Watch until the input ends."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await loop.create_connection(Viewer, "127.0.0.1", port)
    print("all are open", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(Viewer.events, Viewer.lags)


if __name__ == "__main__":
    asyncio.run(watch(*map(int, sys.argv[1:])))
