"""Scenarios of whole processes: the installed command on one core, its client on the other.

What counts is the CPU time the server takes per message, kernel included.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import passes, servers
from bench.load import Plan
from bench.measuring import Compared, Effort, compared
from bench.servers import Server
from bench.table import Row, ratio_row

WARM_UP_POSTS = 500
MOST_MS = 20
SETTLED_SECONDS = 0.05
IDLE_CPU_SECONDS = 0.0005
"""A server that takes less than this between two looks has nothing to do."""
LONGER = 3
"""A sample of processes is longer than one inside: it has the start and the end of a client in it."""


def ingest1(effort: Effort) -> list[Row]:
    """One message a post into an empty pipeline; the bare protocol decodes and appends."""
    return _appended(1, 0.55, effort)


def ingest10(effort: Effort) -> list[Row]:
    """Ten messages a post."""
    return _appended(10, 0.6, effort)


def _appended(size: int, least: float, effort: Effort) -> list[Row]:
    compared = beside([], [], "append", size, effort)
    limit = "a bare protocol that appends"
    return [ratio_row(f"ingest{size}", compared, limit, unit="msg/CPU s", least=least)]


def ingest100(effort: Effort) -> list[Row]:
    """A hundred messages a post through filter, map and reducer to standard output."""
    compared = beside(passes.CHAIN, [{"type": "stdout"}], "reduce", 100, effort)
    limit = "a bare protocol with the tight loop"
    return [ratio_row("ingest100", compared, limit, unit="msg/CPU s", least=0.65)]


def livez(effort: Effort) -> list[Row]:
    """How long a probe waits for its answer while the server is given all it can take."""
    config = [pipeline("p1", passes.CHAIN, [{"type": "stdout"}])]
    with tempfile.TemporaryDirectory() as folder, servers.headrace(config, Path(folder)) as server:
        posts = fitting(server, 100, effort)
        with ThreadPoolExecutor(1) as beside:
            load = beside.submit(
                servers.load, Plan(server.port, path("p1"), 100, posts, connections=64)
            )
            waits = list(probes(server, load))
    p99 = sorted(waits)[int(len(waits) * 0.99)] * 1000
    answered = f"{len(waits)} probes under ingest100"
    bar = f"at most {MOST_MS} ms"
    return [Row("livez", answered, "GET /livez", f"p99 {p99:.1f} ms", bar, p99 <= MOST_MS, p99)]


def probes(server: Server, load: Future[Any]) -> Iterator[float]:
    """Yield what each probe took, in seconds, for as long as there is a load."""
    while not load.done():
        asked = time.monotonic()
        server.get("/livez")
        yield time.monotonic() - asked
        time.sleep(0.002)
    load.result()


def pipeline(id: str, transforms: list[Any], outputs: list[Any]) -> Any:
    """Return the config of a pipeline that is posted to."""
    inputs = [{"type": "http"}]
    return {"id": id, "inputs": inputs, "transforms": transforms, "outputs": outputs}


def path(id: str) -> str:
    """Return where messages for it are posted."""
    return f"/api/pipelines/{id}/messages"


def beside(
    transforms: list[Any], outputs: list[Any], kind: str, size: int, effort: Effort
) -> Compared:
    """Return what a message costs the server beside a bare protocol, both with a client that posts."""
    config = [pipeline("p1", transforms, outputs)]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace(config, Path(folder)) as ours,
        servers.bare(kind) as limit,
    ):
        our_posts, limit_posts = (fitting(server, size, effort) for server in (ours, limit))
        return compared(
            [
                (cost(ours, size, our_posts), cost(limit, size, limit_posts))
                for _ in range(effort.pairs)
            ]
        )


def cost(server: Server, size: int, posts: int, kind: str = "readings") -> float:
    """Return the CPU seconds of one message that is posted with others to the pipeline ``p1``."""
    began = server.cpu
    outcome = servers.load(Plan(server.port, path("p1"), size, posts, kind=kind))
    if outcome.statuses != {"202": posts}:
        raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
    return (settled_cpu(server) - began) / outcome.accepted


def settled_cpu(server: Server) -> float:
    """Return the CPU seconds of a server that has done its work: it answers before all is through."""
    before, now = 0.0, server.cpu
    while now - before > IDLE_CPU_SECONDS:
        time.sleep(SETTLED_SECONDS)
        before, now = now, server.cpu
    return now


def fitting(server: Server, size: int, effort: Effort) -> int:
    """Return how many posts fill a sample. Warms up on the way."""
    posts = WARM_UP_POSTS if effort.pairs > 1 else 16
    return max(int(LONGER * effort.seconds / (cost(server, size, posts) * size)), 16)
