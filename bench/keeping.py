"""Scenarios of a thousand pipelines: listing them, saving them, taking the file back.

While a save and a revert go on, a client posts to one of them, message after message over one
connection: the longest that it waited for an answer is how long ingest stood still.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import passes, servers
from bench.ingest import path, pipeline
from bench.load import Plan
from bench.measuring import Effort
from bench.servers import Server
from bench.signingin import asking
from bench.table import Row

COUNT = 1000
MOST_MS = 10
"""CPU of a listing."""
MOST_SECONDS = 1
MOST_GAP_MS = 50
POST_SECONDS = 2.0
"""How long is posted: the beginning tells what a post waits when nothing else goes on."""
BEFORE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Kept:
    """What a request took, and the longest that a post waited meanwhile, and without it."""

    seconds: float
    gap: float
    gap_without: float


def listing1000(effort: Effort) -> list[Row]:
    """`GET /api/pipelines` of a thousand pipelines."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), effort) as server:
        asked = 100 if effort.pairs > 1 else 2
        each = sorted(asking(server, asked, {}) * 1000 for _ in range(effort.pairs))
    figure = f"{median(each):.2f} ms of CPU ({each[0]:.2f} to {each[-1]:.2f})"
    size = f"{_size(effort)} pipelines listed"
    bar = f"at most {MOST_MS} ms"
    holds = median(each) <= MOST_MS
    return [Row("listing1000", size, "GET /api/pipelines", figure, bar, holds, median(each))]


def save1000(effort: Effort) -> list[Row]:
    """`POST /api/config/save` of a thousand pipelines."""

    def save(server: Server, _: Path) -> None:
        _ask(server, "/api/config/save", {"name": "saved.json"})

    with tempfile.TemporaryDirectory() as folder:
        taken = _beside_posts(Path(folder), effort, save)
    return _rows("save1000", f"{_size(effort)} pipelines saved", taken, is_held=True)


def revert1000(effort: Effort) -> list[Row]:
    """`POST /api/config/revert` to a file in which one of a thousand pipelines is another."""

    def revert(server: Server, config: Path) -> None:
        pipelines = json.loads(config.read_text())
        pipelines[-1]["transforms"] = passes.FILTER1 if not pipelines[-1]["transforms"] else []
        config.write_text(json.dumps(pipelines))
        _ask(server, "/api/config/revert", None)

    with tempfile.TemporaryDirectory() as folder:
        taken = _beside_posts(Path(folder), effort, revert)
    return _rows("revert1000", f"one of {_size(effort)} pipelines changed", taken, is_held=False)


def running(folder: Path, effort: Effort) -> AbstractContextManager[Server]:
    """Run a server with so many pipelines that are posted to."""
    many = [pipeline(f"p{n}", passes.FILTER1, [{"type": "stdout"}]) for n in range(_size(effort))]
    return servers.headrace(many, folder)


def _size(effort: Effort) -> int:
    return COUNT if effort.pairs > 1 else 10


def _beside_posts(folder: Path, effort: Effort, ask: Callable[[Server, Path], None]) -> list[Kept]:
    seconds = POST_SECONDS if effort.pairs > 1 else 0.2
    with running(folder, effort) as server, ThreadPoolExecutor(1) as beside:
        [config] = folder.glob("config-*.json")
        plan = Plan(server.port, path("p0"), 1, 10**9, seconds, connections=1)
        taken = []
        for _ in range(effort.pairs):
            without = servers.load(plan).slowest
            posts = beside.submit(servers.load, plan)
            time.sleep(seconds / 4)
            began = time.monotonic()
            ask(server, config)
            took = time.monotonic() - began
            outcome = posts.result()
            if set(outcome.statuses) != {"202"}:
                raise RuntimeError(f"not everything was accepted: {outcome.statuses}")
            taken.append(Kept(took, outcome.slowest, without))
    return taken


def _ask(server: Server, path: str, body: object) -> None:
    status, _, content = server.ask("POST", path, body)
    if status not in (200, 204):
        raise RuntimeError(f"'{path}' was answered {status}: {content.decode()}")


def _rows(scenario: str, what: str, taken: list[Kept], *, is_held: bool) -> list[Row]:
    """Return how long it took and how long a post waited, of both the middle one and the longest."""
    seconds, gaps = [each.seconds for each in taken], [each.gap * 1000 for each in taken]
    without = median(each.gap_without for each in taken) * 1000
    took = f"{median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
    waited = f"{median(gaps):.0f} ms ({min(gaps):.0f} to {max(gaps):.0f})"
    return [
        Row(
            scenario,
            what,
            "a request",
            took,
            f"at most {MOST_SECONDS} s" if is_held else "-",
            median(seconds) <= MOST_SECONDS if is_held else None,
            median(seconds),
        ),
        Row(
            scenario,
            "a post waited meanwhile",
            f"otherwise {without:.0f} ms",
            waited,
            f"at most {MOST_GAP_MS} ms" if is_held else "-",
            median(gaps) <= MOST_GAP_MS if is_held else None,
            median(gaps),
        ),
    ]
