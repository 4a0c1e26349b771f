"""Scenarios of memory: what an idle pipeline keeps, what a siege leaves behind, what a bucket takes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench import passes, servers
from bench.ingest import path, pipeline
from bench.load import HOST, Outcome, Plan
from bench.measuring import Effort, Work, compare, on_one_core
from bench.servers import Server
from bench.table import Row, ratio_row
from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock

IDLE = 1000
MOST_KB = 50
MOST_MB = 30
SINK_SECONDS = 0.002
"""What the slow sink takes for a batch, so a pipeline cannot deliver more than 500 in a second."""
OVERLOAD = 3
SIZE = 10
KEYS = 1_000_000
FEW_KEYS = 1000
BATCH = 100
MOST_KEY_BYTES = 400
LEAST_AS_LARGE = 0.8
SETTLED_SECONDS = 0.5
DRAINED_SECONDS = 60.0


def idle(effort: Effort) -> list[Row]:
    """A thousand pipelines nobody posts to: http, a filter, stdout."""
    count = IDLE if effort.pairs > 1 else 10
    many = [pipeline(f"p{n}", passes.FILTER1, [{"type": "stdout"}]) for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        with servers.headrace([], Path(folder)) as server:
            empty = _settled(server)
        with servers.headrace(many, Path(folder)) as server:
            full = _settled(server)
    each = (full - empty) / count / 1024
    return [
        Row(
            "pipelines1000",
            f"{full / 2**20:.1f} MB with {count} idle",
            f"an empty server: {empty / 2**20:.1f} MB",
            f"{each:.1f} KB each",
            f"at most {MOST_KB} KB",
            each <= MOST_KB,
            each,
        )
    ]


def overload(effort: Effort) -> list[Row]:
    """Three times as many posts as the output can deliver: memory stays, nothing accepted is lost."""
    return asyncio.run(_overload(effort))


async def _overload(effort: Effort) -> list[Row]:
    sink = SlowSink()
    listening = await asyncio.start_server(sink.serve, HOST, 0)
    output = {"type": "http", "url": f"http://{HOST}:{listening.sockets[0].getsockname()[1]}/"}
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace([pipeline("p1", [], [output])], Path(folder)) as server,
    ):
        start = server.rss
        siege = asyncio.create_task(asyncio.to_thread(servers.load, _siege(server, effort)))
        most = start
        while not siege.done():
            most = max(most, server.rss)
            await asyncio.sleep(0.1)
        outcome = await siege
        await sink.drained(outcome.accepted)
    listening.close()
    return [_row(outcome, sink.messages, (most - start) / 2**20)]


def _siege(server: Server, effort: Effort) -> Plan:
    rate = OVERLOAD / SINK_SECONDS
    posts = int(rate * effort.span)
    return Plan(server.port, path("p1"), SIZE, posts, 2 * effort.span, connections=64, rate=rate)


def _row(outcome: Outcome, delivered: int, growth: float) -> Row:
    refused = outcome.statuses.get("503", 0)
    others = sum(outcome.statuses.values()) - outcome.statuses.get("202", 0) - refused
    is_whole = outcome.accepted == delivered and not others
    told = f"accepted {outcome.accepted:,}, delivered {delivered:,} messages"
    return Row(
        "overload",
        f"{told}; {refused:,} posts answered 503, {others} otherwise",
        f"{OVERLOAD} x what the output delivers, {outcome.seconds:.0f} s",
        f"{growth:+.1f} MB",
        f"at most {MOST_MB} MB, all accepted delivered",
        growth <= MOST_MB and is_whole and refused > 0,
        growth,
    )


def bucket(effort: Effort) -> list[Row]:
    """A bucket of a million keys that expire: its memory, and a write beside one to a thousand keys."""
    count = KEYS if effort.pairs > 1 else 10 * FEW_KEYS
    return [_key_row(count), *on_one_core(_write_rows(count, effort))]


def _key_row(count: int) -> Row:
    values, held = _grown(_values, count), _grown(_held, count)
    each = (held - values) / count
    return Row(
        "bucket1000000",
        f"{held / 2**20:.0f} MB with {count:,} keys of one name",
        f"the same values in a list: {values / 2**20:.0f} MB",
        f"{each:.0f} bytes a key",
        f"at most {MOST_KEY_BYTES}",
        each <= MOST_KEY_BYTES,
        each,
    )


def _grown(make: Callable[[int], Any], count: int) -> int:
    """Return by how many bytes a fresh process grows that makes something and keeps it."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        return process.submit(_growth, make, count).result()


def _growth(make: Callable[[int], Any], count: int) -> int:
    make(1)
    before = _own_rss()
    made = make(count)
    grown = _own_rss() - before
    del made
    return max(grown, 1)


def _values(count: int) -> list[dict[str, str]]:
    return [{"mode": "auto"} for _ in range(count)]


def _held(count: int) -> Bucket:
    """Return a bucket that was written key by key, so that each has a time of its own."""

    async def filled() -> Bucket:
        return _bucket(count, size=1)

    return asyncio.run(filled())


def _bucket(count: int, *, size: int = BATCH) -> Bucket:
    made = Bucket("machines", Bounds(KEYS, 86400), Clock(asyncio.get_running_loop()))
    for start in range(0, count, size):
        made.merge(_writes(range(start, start + size)))
    return made


def _writes(numbers: range) -> dict[str, dict[str, str]]:
    return {f"machine-{number:07}": {"mode": "auto"} for number in numbers}


async def _write_rows(count: int, effort: Effort) -> list[Row]:
    large, small = _bucket(count), _bucket(FEW_KEYS)
    compared = await compare(_writing(large, FEW_KEYS), _writing(small, FEW_KEYS), effort)
    strewn = await compare(_writing(large, count), _writing(small, FEW_KEYS), effort)
    few, many = f"{FEW_KEYS:,}", f"{count:,}"
    return [
        ratio_row(
            "bucket1000000",
            compared,
            f"{few} of {many} keys written, beside {few} of {few}",
            unit="keys/s",
            per=BATCH,
            least=LEAST_AS_LARGE,
        ),
        ratio_row(
            "bucket1000000",
            strewn,
            f"all of {many} in turn, which no cache holds, beside {few} of {few}",
            unit="keys/s",
            per=BATCH,
        ),
    ]


def _writing(into: Bucket, among: int) -> Work:
    """Return the work of writing a batch of keys, each time the next ones of so many."""
    starts = range(0, among, BATCH)
    batches = [_writes(range(start, start + BATCH)) for start in starts]

    async def work(times: int) -> None:
        for number in range(times):
            into.merge(batches[number % len(batches)])

    return work


def _own_rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _settled(server: Server) -> int:
    """Return the memory of a server that has come up and has nothing to do."""
    time.sleep(SETTLED_SECONDS)
    return server.rss


class SlowSink:
    """An HTTP server that takes its time for every batch, and counts the messages."""

    def __init__(self) -> None:
        self.messages = 0
        self._wanted = -1
        self._reached = asyncio.Event()

    async def drained(self, messages: int) -> None:
        """Wait until so many are here, or nothing more can be expected to come."""
        self._wanted = messages
        if self.messages < messages:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._reached.wait(), DRAINED_SECONDS)
        await asyncio.sleep(SETTLED_SECONDS)  # what comes twice shows now

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes over one connection until it is closed."""
        # Cancelled when the scenario is over.
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                body = await reader.readexactly(int(length))
                await asyncio.sleep(SINK_SECONDS)
                self.messages += body.count(b'"machine"')
                if self.messages == self._wanted:
                    self._reached.set()
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()
