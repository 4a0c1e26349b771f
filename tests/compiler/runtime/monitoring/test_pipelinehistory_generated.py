"""Whatever happens when, history tells what a plain list of all that happened tells."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.runtime.monitoring.pipelinehistory import History
from headrace.compiler.runtime.monitoring.signatures import MOST_SIGNATURES
from tests.compiler.runtime.counting import Counting, rows
from tests.examples import examples

IDS = ("a", "b")
BEGAN = 1767225600

ids = st.sampled_from(IDS)
steps = st.one_of(
    st.tuples(st.just("count"), ids, st.integers(0, 2**31), st.integers(0, 9)),
    # Now and then many different ones at once, so that some make room for others.
    st.tuples(st.just("fail"), ids, st.integers(0, 9), st.sampled_from([1, 1, 2, 40])),
    st.tuples(st.just("begin"), ids),
    st.tuples(st.just("end"), ids),
    # In milliseconds: within a bucket, over a few, beyond the fine ring, beyond the coarse one.
    st.tuples(
        st.just("wait"),
        st.one_of(st.integers(1, 9999), st.integers(1, 200_000), st.integers(1, 6_000_000)),
    ),
)


@dataclass
class Told:
    """All that is remembered of an id: what was read when, and every failure with its time."""

    reads: list[tuple[float, Counter[str]]] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)
    first_read: float | None = None
    last_read: float = 0.0

    @property
    def was_active_at(self) -> float:
        return max((at for at, counts in self.reads if any(counts.values())), default=0.0)

    def rows(self, width: int, size: int) -> list[tuple[int, int, int, int]]:
        if self.first_read is None:
            return []
        last = int(self.last_read // width)
        first = max(int(self.first_read // width), last - size + 1)
        sums = defaultdict[int, Counter[str]](Counter)
        for at, counts in self.reads:
            sums[int(at // width)] += counts
        return [
            (number * width, *(sums[number][kind] for kind in ("in", "out", "errors")))
            for number in range(first, last + 1)
        ]

    def signatures(self, now: int, retention: int) -> tuple[list[tuple[int, str, int, int]], int]:
        """Return first and last seen and count of what is told at a moment, and how many made room."""
        kept: dict[str, tuple[int, int, int]] = {}
        dropped = 0
        for at, message in [*self.failed, (now, "")]:
            kept = {text: seen for text, seen in kept.items() if seen[1] >= at - retention * 1000}
            if not message:
                continue
            first, _, count = kept.pop(message, (at, at, 0))
            kept[message] = (first, at, count + 1)
            if len(kept) > MOST_SIGNATURES:
                del kept[min(kept, key=lambda text: kept[text][1])]
                dropped += 1
        told = [(-last, text, first, count) for text, (first, last, count) in kept.items()]
        return sorted(told), dropped


class Model:
    """History as one would write it who has all the memory and all the time there is."""

    def __init__(self, retention: int) -> None:
        self.retention = retention
        self.told: dict[str, Told] = {}
        self.lives: list[str] = []
        self.pending = defaultdict[str, Counter[str]](Counter)

    def read(self, id: str, at: float) -> None:
        told = self.told[id]
        told.reads.append((at, self.pending.pop(id, Counter())))
        told.first_read = at if told.first_read is None else told.first_read
        told.last_read = at

    def tick(self, at: float) -> None:
        for id in self.lives:
            self.read(id, at)
        for id in set(self.told) - set(self.lives):
            if self.told[id].was_active_at < at - self.retention:
                del self.told[id]


class Play:
    """Does the steps to a history and to its model."""

    def __init__(self, retention: int) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.history = History(self.clock, retention)
        self.model = Model(retention)
        self.lives: dict[str, Counting] = {}
        self.texts = 0

    async def count(self, id: str, inbound: int, outbound: int) -> None:
        if id in self.lives:
            self.lives[id].count(inbound, outbound)
            self.model.pending[id] += Counter({"in": inbound, "out": outbound})

    async def fail(self, id: str, text: int, different: int) -> None:
        for number in range(different if id in self.lives else 0):
            message = f"fault {text}" if different == 1 else f"fault {self.texts + number}"
            self.lives[id].fail(message)
            self.model.pending[id]["errors"] += 1
            self.model.told[id].failed.append((self.clock.millis(), message))
            await self.clock.sleep(0.001)  # no two at once: whichever is older goes first
        self.texts += different

    async def begin(self, id: str) -> None:
        if id not in self.lives:
            self.lives[id] = Counting(self.history, id).begin()
            self.model.lives.append(id)
            self.model.told.setdefault(id, Told())
            self.model.read(id, self.clock.seconds())

    async def end(self, id: str) -> None:
        if id in self.lives:
            self.lives.pop(id).end()
            self.model.read(id, self.clock.seconds())
            self.model.lives.remove(id)

    async def wait(self, milliseconds: int) -> None:
        await self.clock.sleep(milliseconds / 1000)

    async def ticking(self) -> None:
        """Read the model whenever history has to be read: in the middle of every five seconds."""
        at = BEGAN + 2.5
        while True:
            await self.clock.sleep(at - self.clock.seconds())
            self.model.tick(at)
            at += 5

    def compare(self) -> None:
        sizes = {"coarse": (60, -(-self.model.retention // 60))}
        sizes["fine"] = (5, -(-min(1800, self.model.retention) // 5))
        for id in IDS:
            told = self.model.told.get(id, Told())
            for resolution, (width, size) in sizes.items():
                assert rows(self.history, id, resolution) == told.rows(width, size)
            past = self.history.past(id, "coarse")
            now = self.clock.millis()
            failures = [
                (-each.last_seen, each.message, each.first_seen, each.count)
                for each in past.failures
            ]
            expected = told.signatures(now, self.model.retention)
            assert (failures, past.dropped_signatures) == expected


@examples(150)
@given(st.sampled_from([1, 59, 300, 3000]), st.lists(steps, max_size=30))
def test_history_tells_what_happened(retention, steps):
    async def main():
        play = Play(retention)
        ticking = asyncio.ensure_future(play.ticking())
        for name, *values in [("begin", "a"), *steps, ("wait", 1)]:
            await getattr(play, name)(*values)
            play.compare()
        ticking.cancel()
        play.history.close()

    run_virtual(main)
