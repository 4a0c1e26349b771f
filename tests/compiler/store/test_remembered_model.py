"""A durable bucket beside a plain dictionary: written, crowded, expired, killed and opened again."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.compiler.clock import VirtualLoop
from tests.compiler.remembering import BEGIN, clock_at, contents, declared, opened, stored
from tests.compiler.store.killed import kill
from tests.examples import examples

T = TypeVar("T")

KEYS = ("", "a", "b", "c\0d", "e", "f", "ü", "c\0e")
MOST = 5
IDLE = 10
Model = dict[str, tuple[dict[str, Any], float]]
"""By key, in the order of the last write: what is there, and when it was written."""


class RememberedMachine(RuleBasedStateMachine):
    """A bucket in a file, on a virtual loop whose clock is sometimes set back a day over a restart."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.told: list[str] = []
        self.count = self.back = 0
        self.model: Model = {}
        self.states: list[Model] = [{}]
        """What a kill may leave: all that there was since something was waited for."""
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> None:
        seconds = asyncio.get_running_loop().time() - self.back
        self.clock = clock_at(BEGIN + timedelta(seconds=seconds))
        self.store = await opened(self.folder, self.clock, self.told)
        self.bucket = await declared(self.store, self.clock, max_keys=MOST, idle=IDLE)

    def expire(self) -> None:
        now = self.now()
        self.model = {key: each for key, each in self.model.items() if each[1] + IDLE > now}

    def now(self) -> float:
        return self.clock.monotonic()

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True))
    def write(self, keys: list[str]) -> None:
        """Write in one turn, of which a kill leaves all or nothing."""
        self.expire()
        values: dict[str, dict[str, Any]] = {}
        for key in keys:
            self.count += 1
            values[key] = {f"n{self.count % 2}": self.count}

        async def work() -> None:
            self.bucket.merge(values)

        self.run(work())
        for key, written in values.items():
            before, _ = self.model.pop(key, ({}, 0))
            if not before and len(self.model) >= MOST:
                del self.model[next(iter(self.model))]
            self.model[key] = {**before, **written}, self.now()
        self.states.append(self.model.copy())

    @rule()
    def wait(self) -> None:
        self.run(stored(self.bucket))
        self.states = [self.model.copy()]

    @rule(seconds=st.sampled_from([0.01, 3.0, 6.0]))
    def pause(self, seconds: float) -> None:
        self.run(self.clock.sleep(seconds))

    @rule()
    def look(self) -> None:
        self.expire()
        assert len(self.bucket) == len(self.model)

    @rule(is_killed=st.booleans(), is_set_back=st.sampled_from([False] * 4 + [True]))
    def again(self, is_killed: bool, is_set_back: bool) -> None:
        async def work() -> None:
            if is_killed:
                kill(self.store)
            else:
                await self.store.close()
            await self.open()

        self.expire()
        self.back += is_set_back * 86_400
        self.run(work())
        found = self.held()
        states = [self.without_expired(each) for each in self.states]
        assert found in (states if is_killed else states[-1:])
        times = {key: self.bucket.entries[key].at for key, _ in found}
        for key, at in times.items():
            # To the microsecond, or, where the clock was ever set back, as if it had been written now.
            known = [each[key][1] for each in self.states if key in each]
            assert self.back or any(abs(at - each) < 1e-5 for each in known)
        self.model = {key: (values, times[key]) for key, values in found}
        self.states = [self.model.copy()]

    def without_expired(self, model: Model) -> list[tuple[str, dict[str, Any]]]:
        now = self.now()
        return [(key, values) for key, (values, at) in model.items() if at + IDLE > now]

    def held(self) -> list[tuple[str, dict[str, Any]]]:
        async def work() -> list[tuple[str, dict[str, Any]]]:
            return contents(self.bucket)

        return self.run(work())

    @invariant()
    def is_as_expected(self) -> None:
        assert self.held() == self.without_expired(self.model)
        assert self.told == []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
            self.runner.close()
            shutil.rmtree(self.folder)


TestRemembered = RememberedMachine.TestCase
TestRemembered.settings = examples(40, stateful_step_count=30)
