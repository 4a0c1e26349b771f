"""Payloads that are no JSON, of every sort and in great number: the good ones between them arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.server import serving
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY
from tests.whole.brokers.kinds.kind import Kind
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.memory import MIB, resident

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("sys.platform != 'linux'", reason="needs /proc"),
]

ROUNDS, BAD = 4, 2500
"""How often what is bad is sent, and how much of it: 10,000 payloads."""
EVERY_BAD = 10
"""How many bad payloads are between two good ones."""
BURST = 50
GROWTH = 48 * MIB
"""How much more memory all later rounds may take than the first: that of three of the largest."""

SHORT = (
    b"",
    b"not JSON",
    b'{"n": 1',
    b'{"n": 1}}',
    b"{'n': 1}",
    b'{"n": "\xff\xfe"}',
    b"\x00\xff" * 20,
    b"NaN",
    b"\xef\xbb\xbf{}",
)
WARNINGS = sorted(
    [
        "Input data was truncated",
        "JSON is malformed: invalid character",
        "JSON is malformed: object keys must be strings",
        "JSON is malformed: trailing characters",
        "nested deeper than 128",
        "not UTF-8",
    ]
)
"""What is said of them, once each and not ten thousand times."""
DEEP = b"[" * 100_000 + b"]" * 100_000
LARGE = b'{"n": 1, "filling": "' + b"x" * 16 * MIB


def payloads(first: int) -> Iterator[bytes]:
    """Yield one round: bad payloads, with a number before each few of them."""
    for bad in range(BAD):
        if bad % EVERY_BAD == 0:
            yield json.dumps({"n": first + bad // EVERY_BAD}).encode()
        if bad == BAD // 2:
            yield LARGE
        elif bad % 100 == 50:
            yield DEEP
        else:
            yield SHORT[bad % len(SHORT)]


async def publish(kind: Kind, server: Any, first: int) -> None:
    """Publish one round."""
    async with kind.dial(server, "in") as channel:
        rest = payloads(first)
        while burst := [*islice(rest, BURST)]:
            await channel.send(burst)


@promise("delivery.case.garbage")
def test_good_messages_arrive_and_memory_stays(tmp_path: Path, figure: Figure) -> None:
    good = BAD // EVERY_BAD
    config = [
        {
            "id": kind.name,
            "inputs": [kind.input(kind.name, "in", max_batch=10)],
            "outputs": [{"type": "stdout"}],
        }
        for kind in EVERY
    ]
    with ExitStack() as running:
        brokers = {kind: running.enter_context(kind.roomy(tmp_path / kind.name)) for kind in EVERY}
        connections = {kind.name: kind.connection(broker) for kind, broker in brokers.items()}
        options = linked(tmp_path / "headrace", connections)
        for kind, broker in brokers.items():
            kind.create(broker, "in")
        aside = running.enter_context(Aside())
        server = running.enter_context(serving(tmp_path / "headrace", config, *options))
        printed = Printed(server.out)
        used = []
        for each in range(ROUNDS):
            for kind, broker in brokers.items():
                aside.do(publish(kind, broker, each * good))
            for kind in EVERY:
                printed[kind.name].wait_for(range((each + 1) * good))
            used.append(resident(server))

        figure("MiB after each round", [round(each / MIB) for each in used])
        assert max(used) - used[0] < GROWTH
        assert set(statuses(server).values()) == {"running"}
        for kind in EVERY:
            skipped = server.metric("headrace_messages_skipped_total", pipeline=kind.name)
            assert skipped == ROUNDS * BAD
            assert printed[kind.name].duplicates == 0
            said = re.findall(rf"'{kind}' inputs\[0\]: skipped .*? not JSON: (.*)", str(server.err))
            assert sorted(said) == WARNINGS
