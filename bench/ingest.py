"""Scenarios of whole processes: the installed command on one core, its client on the other.

What counts is the CPU time the server takes per message, kernel included.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench import passes, servers
from bench.load import Plan
from bench.measuring import Compared, Effort, compared
from bench.servers import Server
from bench.table import Row, ratio_row

WARM_UP_POSTS = 500
LONGER = 3
"""A sample of processes is longer than one inside: it has the start and the end of a client in it."""


def ingest1(effort: Effort) -> list[Row]:
    """One message a post into an empty pipeline; the bare app decodes and appends."""
    compared = _beside([], [], "append", 1, effort)
    limit = "a bare app that appends"
    return [ratio_row("ingest1", compared, limit, unit="msg/CPU s", least=0.75)]


def ingest100(effort: Effort) -> list[Row]:
    """A hundred messages a post through filter, map and reducer to standard output."""
    compared = _beside(passes.CHAIN, [{"type": "stdout"}], "reduce", 100, effort)
    limit = "a bare app with the tight loop"
    return [ratio_row("ingest100", compared, limit, unit="msg/CPU s", least=0.8)]


def pipeline(id: str, transforms: list[Any], outputs: list[Any]) -> Any:
    """Return the config of a pipeline that is posted to."""
    inputs = [{"type": "http"}]
    return {"id": id, "inputs": inputs, "transforms": transforms, "outputs": outputs}


def path(id: str) -> str:
    """Return where messages for it are posted."""
    return f"/api/pipelines/{id}/messages"


def _beside(
    transforms: list[Any], outputs: list[Any], kind: str, size: int, effort: Effort
) -> Compared:
    config = [pipeline("p1", transforms, outputs)]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace(config, Path(folder)) as ours,
        servers.bare(kind) as limit,
    ):
        our_posts, limit_posts = (_fitting(server, size, effort) for server in (ours, limit))
        return compared(
            [
                (_cost(ours, size, our_posts), _cost(limit, size, limit_posts))
                for _ in range(effort.pairs)
            ]
        )


def _cost(server: Server, size: int, posts: int) -> float:
    """Return the CPU seconds of one message."""
    began = server.cpu
    outcome = servers.load(Plan(server.port, path("p1"), size, posts))
    if outcome.statuses != {"202": posts}:
        raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
    return (server.cpu - began) / outcome.accepted


def _fitting(server: Server, size: int, effort: Effort) -> int:
    """Return how many posts fill a sample. Warms up on the way."""
    posts = WARM_UP_POSTS if effort.pairs > 1 else 16
    return max(int(LONGER * effort.seconds / (_cost(server, size, posts) * size)), 16)
