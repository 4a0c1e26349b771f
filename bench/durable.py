"""Scenarios of posts that are on the disk before they are answered, beside posts that are not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import servers
from bench.ingest import fitting, path, settled_cpu
from bench.load import Plan
from bench.measuring import Effort, compared
from bench.servers import Server
from bench.table import Row, ratio_row

CONNECTIONS = 64
BY_ASGI = "?by=asgi"
"""What a post has in its path that is to be answered by an application. A question mark alone does not do:
such a post is a plain one, which is answered in the protocol."""
MOST_ON_TOP = {1: {"process": 0.35, "power": 0.55}, 100: {"process": 0.35, "power": 0.4}}
"""What a post of so many messages may cost on top, as a share of one that an application of ASGI answers:
the figures that were set when all of them were."""


def durable1(effort: Effort) -> list[Row]:
    """One message a post into an empty pipeline."""
    return [*_stored(1, effort)]


def durable100(effort: Effort) -> list[Row]:
    """A hundred messages a post."""
    return [*_stored(100, effort)]


def _stored(size: int, effort: Effort) -> Iterator[Row]:
    """Yield what a post costs that is stored, of the process and its threads, for each way to store it.

    Beside one that is not, and on top of that as a share of one that an application answers.
    """
    for sync, most in MOST_ON_TOP[size].items():
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(Path(folder, "durable"), sync) as ours,
            serving(Path(folder, "plain"), None) as plain,
        ):
            posts = min(fitting(each, size, effort) for each in (ours, plain))
            turns = [
                (
                    _cost(ours, size, posts),
                    _cost(plain, size, posts),
                    _cost(plain, size, posts, BY_ASGI),
                )
                for _ in range(effort.pairs)
            ]
        yield ratio_row(
            f"durable{size}",
            compared([(own, other) for own, other, _ in turns]),
            f"the same without 'durable', and sync: {sync} with",
            unit="msg/CPU s",
        )
        shares = sorted((own - other) / asgi for own, other, asgi in turns)
        share = shares[len(shares) // 2]
        yield Row(
            f"durable{size}",
            f"on top of a post that is not stored, sync: {sync}",
            "a post that an application of ASGI answers",
            f"{share:.2f} ({shares[0]:.2f} to {shares[-1]:.2f})",
            f"at most {most}",
            share <= most,
            1 + share,
        )


@contextmanager
def serving(
    folder: Path, sync: str | None, outputs: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Server]:
    """Give a server whose one pipeline keeps what is posted, or keeps nothing."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"store": {"sync": sync or "power", "keep_free_bytes": 0}}))
    source = {"type": "http"} | ({} if sync is None else {"durable": True})
    config = [{"id": "p1", "inputs": [source], "transforms": [], "outputs": [*outputs]}]
    options = ["--data-dir", str(data), "--server-config", str(settings)]
    with servers.headrace(config, folder, options=options) as server:
        yield server


def _cost(server: Server, size: int, posts: int, query: str = "") -> float:
    """Return the CPU seconds of one message; an application answers posts that have a ``query``."""
    began = server.cpu
    plan = Plan(server.port, path("p1") + query, size, posts, connections=CONNECTIONS)
    outcome = servers.load(plan)
    if outcome.statuses != {"202": posts}:
        raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
    return (settled_cpu(server) - began) / outcome.accepted
