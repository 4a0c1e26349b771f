"""Whatever is written and looked up in whatever order, a bucket does what a plain list would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.compiler import buckets
from headrace.compiler.buckets import SPARE, Bounds, Bucket
from tests.compiler.bucketed import HandClock
from tests.examples import examples


class Slow:
    """What a bucket is, without any thought of what it costs: a list of writes, newest last."""

    def __init__(self, max_keys: int, idle: int | None) -> None:
        self.max_keys, self.idle = max_keys, idle
        self.now = 0
        self.written: list[tuple[str, dict[str, int], int]] = []

    def held(self) -> list[tuple[str, dict[str, int], int]]:
        return [
            each for each in self.written if self.idle is None or self.now - each[2] < self.idle
        ]

    def merge(self, writes: Mapping[str, Mapping[str, int]]) -> None:
        for key, values in writes.items():
            held = {each[0]: each[1] for each in self.held()}
            self.written = [each for each in self.held() if each[0] != key]
            self.written = self.written[-self.max_keys + 1 :] if self.max_keys > 1 else []
            self.written.append((key, {**held.get(key, {}), **values}, self.now))

    def newest(self) -> list[tuple[str, dict[str, int], int]]:
        return sorted(self.held(), key=lambda each: (-each[2], each[0]))


KEYS = ["", "a", "b", "c", "d", "ä"]


WRITES = st.dictionaries(
    st.sampled_from(KEYS),
    st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), min_size=1),
    min_size=1,
)


ROWS = st.dictionaries(
    st.sampled_from(KEYS), st.fixed_dictionaries({"x": st.integers(0, 9)}), min_size=1
)


TURNS = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), min_size=1),
    ),
    min_size=1,
)


class BucketMachine(RuleBasedStateMachine):
    """A bucket does what the slow one does, whatever comes in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()

    def teardown(self) -> None:
        self.patch.undo()

    @initialize(
        max_keys=st.integers(1, 5),
        idle=st.none() | st.integers(1, 4),
        spare=st.sampled_from([0, SPARE]),
    )
    def begin(self, max_keys: int, idle: int | None, spare: int) -> None:
        self.patch.setattr(buckets, "SPARE", spare)  # with 0, what has expired stays for a while
        self.clock = HandClock()
        self.it = Bucket("b", Bounds(max_keys, idle), self.clock)
        self.slow = Slow(max_keys, idle)
        self.write = self.it.writer({"x": "m['x']"})
        self.told: list[str] = []
        for key in ("a", ""):
            self.it.watch(key, lambda key=key: self.told.append(key))

    @rule(writes=WRITES)
    def merge(self, writes: dict[str, dict[str, int]]) -> None:
        self._merge_both(self.it.merge, writes)

    @rule(rows=ROWS)
    def merge_rows(self, rows: dict[str, dict[str, int]]) -> None:
        self._merge_both(lambda them: self.write(dict(reversed(them.items()))), rows)

    @rule(turns=TURNS)
    def merge_in_turn(self, turns: list[tuple[str, dict[str, int]]]) -> None:
        self.told.clear()

        self.it.merge_in_turn(turns)
        for key, values in turns:
            self.slow.merge({key: values})

        assert self.told == [key for key in ("", "a") if key in dict(turns)]

    @rule(turns=TURNS)
    def merge_by_the_last_write_where_no_key_has_to_go(
        self, turns: list[tuple[str, dict[str, int]]]
    ) -> None:
        gathered: dict[str, dict[str, int]] = {}
        for key, values in turns:
            gathered[key] = {**gathered.pop(key, {}), **values}
        if self.it.displaces(gathered):
            return

        self.it.merge(gathered)
        for key, values in turns:
            self.slow.merge({key: values})

    def _merge_both(self, merge: Any, writes: dict[str, dict[str, int]]) -> None:
        self.told.clear()

        merge(writes)
        self.slow.merge(writes)

        assert self.told == [key for key in ("", "a") if key in writes]

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds
        self.slow.now += seconds

    @rule(most=st.integers(0, 3))
    def expire(self, most: int) -> None:
        self.it.expire(most)

    @rule(most=st.integers(1, 4))
    def look(self, most: int) -> None:
        assert self.it.newest(most) == self.slow.newest()[:most]
        assert len(self.it) == len(self.slow.held())

    @invariant()
    def both_hold_the_same(self) -> None:
        cutoff = self.it.cutoff()
        live = [key for key, entry in self.it.entries.items() if entry.at > cutoff]
        assert live == [key for key, _, _ in self.slow.held()]
        assert len(self.it.entries) <= self.slow.max_keys
        held = {key: values for key, values, _ in self.slow.held()}
        assert {key: self.it.get(key) for key in KEYS} == {key: held.get(key) for key in KEYS}


BucketMachine.TestCase.settings = examples(150, stateful_step_count=30)


TestBucket = BucketMachine.TestCase
