"""Two hundred who watch a server that is given all it can take: it hardly gets slower for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import servers
from bench.load import Plan
from bench.measuring import cpu_of
from tests.clients import messages_of
from tests.server import Server, end_with_parent, serving
from tests.whole.figures import Figure

pytestmark = [
    pytest.mark.long,
    pytest.mark.timed,
]

VIEWERS = 200
READERS = 9
ROUNDS = 5
SECONDS = 0.8
LEAST = 0.6
"""What is measured is from 0.76 to 1.07."""

CONFIG = [
    {"id": "p", "inputs": [{"type": "http"}]},
    *({"id": f"r{n}", "inputs": [{"type": "pipeline", "upstream": "p"}]} for n in range(READERS)),
]
ROOT = Path(__file__).parents[3]


@contextmanager
def watched(server: Server, seen: list[int]) -> Iterator[None]:
    """Have the server watched by all, and keep how many events each of them saw."""
    watching = subprocess.Popen(
        [sys.executable, "-m", "tests.whole.attacks.viewers", str(server.port), str(VIEWERS)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline()
        yield
        told, _ = watching.communicate()
        events, _ = map(int, told.split())
        seen.append(events // VIEWERS)
    finally:
        watching.kill()
        watching.wait()


def speed(server: Server) -> float:
    """Return the messages that it takes in a second of its own time."""
    began = cpu_of(server.process.pid)
    plan = Plan(server.port, messages_of("p"), 100, 10**9, seconds=SECONDS)
    return servers.load(plan).accepted / (cpu_of(server.process.pid) - began)


def test_two_hundred_viewers_cost_the_pipelines_little(tmp_path: Path, figure: Figure) -> None:
    alone, beside, seen = list[float](), list[float](), list[int]()
    with serving(tmp_path, CONFIG) as server:
        speed(server)
        for _ in range(ROUNDS):
            alone.append(speed(server))
            with watched(server, seen):
                beside.append(speed(server))

    kept = max(beside) / max(alone)  # what else the machine does makes a round slower, never faster
    figure("speed that is kept", round(kept, 2))
    figure("events that each saw", seen)
    assert kept > LEAST
    assert min(seen) > 0
