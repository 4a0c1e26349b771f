"""The limit for what is posted into PostgreSQL: a bare ASGI app and a loop that inserts.

Run as a process of its own: ``python -m bench.inserting PORT DSN LEAST``, where so many messages at
least are inserted at once, unless a second passes.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from bench import bare
from bench.byhand import running
from bench.stores_byhand import Inserting


async def _serve(port: int, dsn: str, least: int) -> None:
    inserting = Inserting(least)
    async with running(inserting.run(dsn)):
        await bare.serve(bare.app(inserting.take), port)


def main(port: str, dsn: str, least: str) -> None:
    """Serve until told to end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(port), dsn, int(least)))


if __name__ == "__main__":
    main(*sys.argv[1:])
