"""A store beside a plain model of it: appended, read, let go of, closed, killed and opened again."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from headrace.compiler.clock import Clock, VirtualLoop
from headrace.compiler.store.database import BLAMED_SECONDS
from headrace.compiler.store.group import Group
from headrace.compiler.store.journal import SURVIVED_SECONDS, Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import ALONE_FROM, SET_ASIDE_FROM
from headrace.compiler.store.storeformat import unpacked
from headrace.compiler.store.suspects import TOGETHER
from tests.compiler.store.killed import kill
from tests.examples import examples

T = TypeVar("T")

QUEUES = ("one", "two", "three")
LARGE = 300 * 1024
queues = st.sampled_from(QUEUES)


class Model:
    """What is known of one queue. Entries are told apart by the running number in their payload."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.payloads: list[bytes] = []
        self.pending: dict[int, Group] = {}
        """Put down, and not waited for."""
        self.kept: set[int] = set()
        """Stored, and not let go of: they are there."""
        self.maybe: set[int] = set()
        """They may come again after a kill: let go of, or put down without an answer."""
        self.gone: set[int] = set()
        """Let go of in this life: they do not come again, unless it ends without a word."""
        self.out: dict[int, int] = {}
        """Handed out in this life and not let go of, with their numbers."""
        self.since: dict[int, float] = {}
        """When that was."""
        self.numbers: dict[int, int] = {}
        """Each number there ever was, and what it is of."""
        self.least_deaths: dict[int, int] = {}
        self.most_deaths: dict[int, int] = {}
        self.read_to = -1
        self.expected = 0
        """Entries that the queue says it has."""

    def append(self, size: int) -> bytes:
        payload = b"%s:%d:" % (self.name.encode(), len(self.payloads)) + bytes(size)
        self.payloads.append(payload)
        self.expected += 1
        return payload

    def stored(self) -> None:
        """All that is pending is there."""
        self.kept |= self.pending.keys()
        self.pending.clear()

    def read(self, entries: list[StoredEntry], now: float) -> None:
        """Check what is handed out: nothing is left out."""
        if entries:
            before = self.read_to
            deaths = {each.deaths for each in entries}
            assert (
                len(entries) == 1
                or all(each < ALONE_FROM for each in deaths)
                or deaths == {ALONE_FROM}
            )
            for entry in entries:
                self.seen(entry, now)
            expected = {which for which in self.kept if before < which <= self.read_to}
            assert expected <= self.out.keys()

    def seen(self, entry: StoredEntry, now: float) -> None:
        """Check one entry that is handed out."""
        name, text, _ = entry.payload.split(b":", 2)
        which = int(text)
        assert name.decode() == self.name
        assert entry.payload == self.payloads[which]
        assert which in self.kept or which in self.maybe or which in self.pending
        assert self.numbers.setdefault(entry.number, which) == which
        assert which > self.read_to
        least, most = self.least_deaths.get(which, 0), self.most_deaths.get(which, 0)
        assert least <= entry.deaths <= most
        self.least_deaths[which] = self.most_deaths[which] = entry.deaths
        if entry.deaths >= ALONE_FROM:
            beside = [each for each in self.out if not self.may_have_survived(each, now)]
            assert len(beside) < (TOGETHER if entry.deaths == ALONE_FROM else 1)
            assert all(self.least_deaths[each] == ALONE_FROM for each in beside)
        self.read_to = which
        self.out[which] = entry.number
        self.since[which] = now
        self.maybe.discard(which)
        self.pending.pop(which, None)
        self.kept.add(which)

    def may_have_survived(self, which: int, now: float) -> bool:
        """Return whether an entry was under way so long that it may have been found to be innocent."""
        is_deadly = self.least_deaths[which] >= SET_ASIDE_FROM
        return not is_deadly and now - self.since[which] > SURVIVED_SECONDS - 0.001

    def is_alone(self) -> bool:
        """Return whether what is out may end the process: that of other queues waits as well."""
        return any(self.least_deaths.get(which, 0) >= ALONE_FROM for which in self.out)

    def is_deadly(self) -> bool:
        """Return whether what is out has ended the process alone."""
        return any(self.least_deaths[which] >= SET_ASIDE_FROM for which in self.out)

    def let_go(self, which: int) -> int:
        self.kept.discard(which)
        self.gone.add(which)
        self.expected -= 1
        return self.out.pop(which)

    def die(self, began: float, now: float) -> None:
        """The process ends without a word."""
        least_more = int(now - began < BLAMED_SECONDS)
        for which in self.gone:
            if self.may_have_survived(which, now):
                self.least_deaths[which] = 0
        for which in self.kept | self.maybe | self.gone | self.pending.keys():
            most, least = self.most_deaths.get(which, 0), self.least_deaths.get(which, 0)
            if which in self.out and least < SET_ASIDE_FROM:
                is_innocent = self.may_have_survived(which, now)
                more = 0 if least == ALONE_FROM else least_more  # it may have been one of several
                self.least_deaths[which] = 0 if is_innocent else least + more
                self.most_deaths[which] = least + 1
            elif most < ALONE_FROM:  # from then on it is counted only where it was handed out
                self.most_deaths[which] = most + 1
        self.maybe |= self.gone | self.pending.keys()
        self.gone.clear()
        self.pending.clear()

    def close(self) -> None:
        self.stored()
        self.gone.clear()

    def reopened(self, journal: Journal, now: float) -> None:
        for which in self.out:
            if self.may_have_survived(which, now):
                self.least_deaths[which] = 0
        self.out.clear()
        self.read_to = -1
        self.expected = journal.entries
        assert len(self.kept) <= journal.entries <= len(self.kept) + len(self.maybe)


class StoreMachine(RuleBasedStateMachine):
    """A store in a file, on a virtual loop."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.models = {name: Model(name) for name in QUEUES}
        self.told: list[str] = []
        self.ended = 0
        self.aside: set[bytes] = set()
        """What was set aside, in any life."""
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.began = self.clock.monotonic()
        self.store = await Store.open(
            self.clock,
            self.folder,
            sync="process",
            keep_free_bytes=0,
            reserve_bytes=0,
            tell=self.told.append,
        )
        self.journals = {
            name: await Journal.open(self.store, "p", name, "journal", 2**40) for name in QUEUES
        }
        for name, model in self.models.items():
            model.reopened(self.journals[name], self.clock.monotonic())

    @rule(name=queues, sizes=st.lists(st.sampled_from([0, 10, 1000, 50_000, LARGE]), max_size=30))
    def append(self, name: str, sizes: list[int]) -> None:
        model = self.models[name]

        async def work() -> None:
            for size in sizes:
                payload = model.append(size)
                which = len(model.payloads) - 1
                model.pending[which] = self.journals[name].append(payload)

        self.run(work())

    @rule(name=queues, count=st.sampled_from([1_500, 5_000]))
    def append_many(self, name: str, count: int) -> None:
        self.append(name, [0] * count)

    @rule(name=queues)
    def wait(self, name: str) -> None:
        model = self.models[name]

        async def work() -> None:
            for group in model.pending.values():
                await group.stored()

        self.run(work())
        model.stored()

    @rule(name=queues, most=st.sampled_from([1, 3, 100, 1_024]))
    def read(self, name: str, most: int) -> None:
        self.read_some(name, most)

    def read_some(self, name: str, most: int) -> int:
        """Read what is there; nothing, where all is read, or something waits to be alone."""
        model, journal = self.models[name], self.journals[name]

        async def work() -> list[StoredEntry]:
            try:
                async with self.clock.timeout(1):
                    return await journal.read(most)
            except TimeoutError:
                return []

        entries = self.run(work())
        model.read(entries, self.clock.monotonic())
        if (
            not entries
            and not any(each.is_alone() for each in self.models.values())
            and not model.out
        ):
            # All that is pending is stored by now, and would have been read.
            assert (model.kept, model.pending) == (set(), {})
        return len(entries)

    @precondition(lambda self: any(model.out for model in self.models.values()))
    @rule(name=queues, choice=st.randoms(use_true_random=False), share=st.sampled_from([0.3, 1.0]))
    def let_go(self, name: str, choice: Any, share: float) -> None:
        out = sorted(self.models[name].out)
        self.let_go_of(name, choice.sample(out, round(share * len(out))))

    def let_go_of(self, name: str, entries: list[int]) -> None:
        async def work() -> None:
            self.journals[name].let_go([self.models[name].let_go(each) for each in entries])

        self.run(work())

    @rule(name=queues)
    def end_and_open(self, name: str) -> None:
        """A queue is ended: what is left stays, and the next of that name begins empty."""
        model = self.models[name]

        async def work() -> None:
            before = {
                each.id for each in await self.store.queues.listed() if each.ended is not None
            }
            await self.journals[name].end()
            model.close()
            ended = [each for each in await self.store.queues.listed() if each.ended is not None]
            found = sum(each.entries for each in ended if each.id not in before)
            assert len(model.kept) <= found <= len(model.kept) + len(model.maybe)
            self.journals[name] = await Journal.open(self.store, "p", name, "journal", 2**40)

        self.run(work())
        self.ended += 1
        self.models[name] = Model(f"{name} {self.ended}")
        self.models[name].reopened(self.journals[name], self.clock.monotonic())

    @precondition(lambda self: any(model.is_deadly() for model in self.models.values()))
    @rule()
    def set_aside(self) -> None:
        async def work() -> None:
            for name, model in self.models.items():
                if model.is_deadly():
                    [which] = model.out
                    self.aside.add(model.payloads[which])
                    self.journals[name].set_aside(model.let_go(which))

        self.run(work())

    @rule()
    def nothing_comes_for_a_while(self) -> None:
        self.run(self.clock.sleep(1))
        for model in self.models.values():
            model.stored()

    @rule()
    def close_in_order_and_open(self) -> None:
        async def work() -> None:
            for name, model in self.models.items():
                await self.journals[name].close()
                model.close()
            await self.store.close()

        self.run(work())
        self.run(self.open())

    @rule(name=queues)
    def give_back_and_open(self, name: str) -> None:
        async def work() -> None:
            await self.journals[name].close()
            self.models[name].close()
            self.journals[name] = await Journal.open(self.store, "p", name, "journal", 2**40)

        self.run(work())
        self.models[name].reopened(self.journals[name], self.clock.monotonic())

    @rule()
    def kill_and_open(self) -> None:
        self.run(self.killed())
        self.run(self.open())

    async def killed(self) -> None:
        kill(self.store)
        for model in self.models.values():
            model.die(self.began, self.clock.monotonic())

    @invariant()
    def the_figures_are_right(self) -> None:
        for name, model in self.models.items():
            assert self.journals[name].entries == model.expected

    @invariant()
    def nothing_is_told(self) -> None:
        assert self.told == []

    def teardown(self) -> None:
        try:
            self.close_in_order_and_open()
            for name, model in self.models.items():
                count, entries = 0, self.journals[name].entries
                while self.journals[name].entries:
                    count += self.read_some(name, 1_024)
                    assert set(model.out) or not model.kept
                    self.let_go_of(name, sorted(model.out))
                assert count == entries
                assert model.kept == set()
                assert self.journals[name].bytes == 0
            self.close_in_order_and_open()
            assert [journal.entries for journal in self.journals.values()] == [0, 0, 0]
            found = self.store.database._run.execute("SELECT count, body FROM aside").fetchall()
            aside = [payload for row in found for payload in unpacked(*row)]
            assert set(aside) <= self.aside  # what a kill came before may have come again
            assert len(aside) == len(set(aside))
            self.run(self.store.close())
            self.runner.close()
        finally:
            shutil.rmtree(self.folder)


StoreMachine.TestCase.settings = examples(50, stateful_step_count=30)
TestStore = StoreMachine.TestCase
