"""Scenarios of what posts that are stored have others wait for, and what is in memory of them."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median

from bench import servers
from bench.durable import CONNECTIONS, serving
from bench.ingest import MOST_MS, fitting, path, probes
from bench.load import Plan
from bench.measuring import Effort
from bench.servers import Server
from bench.table import Row
from headrace.compiler.store.database import Database
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.journal import PAGE_BYTES

A_SECOND = 1_000
LONGER_MS = 3
"""How much longer than without it 99 of 100 posts may wait for their answer."""
READ_BACK_BYTES = 1_000_000_000
POST_BYTES = 12_500
MOST_MEMORY = 60_000_000
MOST_READ_SECONDS = 3
"""How long the store may take to read them, without what becomes of them."""
LOOKS_SECONDS = 0.02


def durablewait(effort: Effort) -> list[Row]:
    """How long a post waits for its answer where a thousand come a second."""
    return [*_waits(effort)]


def _waits(effort: Effort) -> Iterator[Row]:
    for sync in ("process", "power"):
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(Path(folder, "durable"), sync) as ours,
            serving(Path(folder, "plain"), None) as plain,
        ):
            seconds = 3 if effort.pairs > 1 else 0.2
            pairs = [(_p99(ours, seconds), _p99(plain, seconds)) for _ in range(effort.pairs)]
        own, other = (median(each) for each in zip(*pairs, strict=True))
        longer = median(with_it - without for with_it, without in pairs)
        yield Row(
            "durablewait",
            f"{A_SECOND} posts a second, sync: {sync}: p99 {own:.1f} ms",
            f"without 'durable': p99 {other:.1f} ms",
            f"{longer:.1f} ms longer",
            f"at most {LONGER_MS} ms",
            longer <= LONGER_MS,
            own,
        )


def _p99(server: Server, seconds: float) -> float:
    """Return how long 99 of 100 posts wait at most. Units: milliseconds."""
    plan = Plan(
        server.port,
        path("p1"),
        1,
        round(A_SECOND * seconds),
        connections=CONNECTIONS,
        rate=A_SECOND,
    )
    return servers.load(plan).p99 * 1000


def durablelivez(effort: Effort) -> list[Row]:
    """How long a probe waits while the server is given all the posts that it can store."""
    rows = []
    for size in (1, 100):
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), "power") as server:
            posts = 10 * fitting(server, size, effort)
            plan = Plan(server.port, path("p1"), size, posts, connections=CONNECTIONS)
            with ThreadPoolExecutor(1) as beside:
                waits = sorted(probes(server, beside.submit(servers.load, plan)))
        p99 = waits[int(len(waits) * 0.99)] * 1000
        measured = f"{len(waits)} probes under posts of {size} that are stored, sync: power"
        figure, bar = f"p99 {p99:.1f} ms", f"at most {MOST_MS} ms"
        rows.append(Row("durablelivez", measured, "GET /livez", figure, bar, p99 <= MOST_MS, p99))
    return rows


def readback(effort: Effort) -> list[Row]:
    """What is in memory while a gigabyte is read back that an output had not taken."""
    most = READ_BACK_BYTES if effort.pairs > 1 else 1_000_000
    away = [{"type": "http", "url": f"http://{servers.HOST}:9/", "retry": {}}]
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder), "process", away) as server:
            plan = Plan(
                server.port,
                path("p1"),
                100,
                most // POST_BYTES,
                seconds=300,
                connections=CONNECTIONS,
            )
            outcome = servers.load(plan)
            if set(outcome.statuses) != {"202"}:
                raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
        [file] = Path(folder).rglob(DATABASE)
        read = _read_back(file, effort)
        with serving(Path(folder, "beside"), "process") as server:
            idle = server.rss
        began = time.monotonic()
        with serving(Path(folder), "process") as server:
            rss = server.rss
            while (
                b'"entries":0' not in (stored := server.get("/api/stored")[1]) and stored != b"[]"
            ):
                rss = max(rss, server.rss)
                time.sleep(LOOKS_SECONDS)
            seconds = time.monotonic() - began
    more = rss - idle
    return [
        read,
        Row(
            "readback",
            f"{most / 1e9:.3g} GB read back and worked off in {seconds:.1f} s",
            f"idle: {idle / 1e6:.0f} MB",
            f"{more / 1e6:.0f} MB more",
            f"at most {MOST_MEMORY / 1e6:.0f} MB",
            more <= MOST_MEMORY,
            rss,
        ),
    ]


def _read_back(file: Path, effort: Effort) -> Row:
    """Return how long the store reads all of it, beside SQLite that only returns the rows."""
    turns = []
    for _ in range(min(effort.pairs, 3)):
        with closing(Database(file, "process", time.time, is_only_read=True)) as database:
            began = time.perf_counter()
            entries = _read_by_store(database)
            took = time.perf_counter() - began
        with closing(sqlite3.connect(file)) as by_hand:
            began = time.perf_counter()
            for _row in by_hand.execute("SELECT * FROM entries ORDER BY queue, first"):
                pass
            turns.append((took, time.perf_counter() - began))
    own, other = (median(each) for each in zip(*turns, strict=True))
    return Row(
        "readback",
        f"{entries:,} entries of {file.stat().st_size / 1e9:.3g} GB read by the store",
        f"SQLite returns their rows: {other:.2f} s",
        f"{own:.2f} s",
        f"at most {MOST_READ_SECONDS} s",
        own <= MOST_READ_SECONDS,
        own,
    )


def _read_by_store(database: Database) -> int:
    """Read all of one queue, a page at a time; return how many entries there were."""
    [queue] = database.queues()
    entries, after, is_last = 0, -1, False
    while not is_last:
        page = database.page(queue.id, after, queue.next, PAGE_BYTES)
        entries += sum(len(row.payloads) for row in page.rows)
        after, is_last = page.last, page.is_last
    return entries
