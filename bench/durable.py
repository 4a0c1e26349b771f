"""Scenarios of posts that are on the disk before they are answered, beside posts that are not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import servers
from bench.ingest import fitting, path, settled_cpu
from bench.load import Plan
from bench.measuring import Effort, compared
from bench.servers import Server
from bench.table import Row, ratio_row

CONNECTIONS = 64
LEAST = {(1, "process"): 0.74, (1, "power"): 0.66, (100, "process"): 0.74, (100, "power"): 0.71}
"""The share of the speed without that has to be left, by messages of a post and by what is outlasted."""


def durable1(effort: Effort) -> list[Row]:
    """One message a post into an empty pipeline."""
    return [*_beside(1, effort)]


def durable100(effort: Effort) -> list[Row]:
    """A hundred messages a post."""
    return [*_beside(100, effort)]


def _beside(size: int, effort: Effort) -> Iterator[Row]:
    """Yield what a post costs that is stored, of the process and its threads, for each way to store it."""
    for sync in ("process", "power"):
        with (
            tempfile.TemporaryDirectory() as folder,
            _serving(Path(folder, "durable"), sync) as ours,
            _serving(Path(folder, "plain"), None) as plain,
        ):
            posts = min(fitting(each, size, effort) for each in (ours, plain))
            pairs = [
                (_cost(ours, size, posts), _cost(plain, size, posts)) for _ in range(effort.pairs)
            ]
        yield ratio_row(
            f"durable{size}",
            compared(pairs),
            f"the same without 'durable', and sync: {sync} with",
            unit="msg/CPU s",
            least=LEAST[size, sync],
        )


@contextmanager
def _serving(folder: Path, sync: str | None) -> Iterator[Server]:
    """Give a server whose one pipeline keeps what is posted, or keeps nothing."""
    data = folder / "data"
    data.mkdir(parents=True)
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"store": {"sync": sync or "power", "keep_free_bytes": 0}}))
    source = {"type": "http"} | ({} if sync is None else {"durable": True})
    config = [{"id": "p1", "inputs": [source], "transforms": [], "outputs": []}]
    options = ["--data-dir", str(data), "--server-config", str(settings)]
    with servers.headrace(config, folder, options=options) as server:
        yield server


def _cost(server: Server, size: int, posts: int) -> float:
    """Return the CPU seconds of one message that is posted with others."""
    began = server.cpu
    outcome = servers.load(Plan(server.port, path("p1"), size, posts, connections=CONNECTIONS))
    if outcome.statuses != {"202": posts}:
        raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
    return (settled_cpu(server) - began) / outcome.accepted
