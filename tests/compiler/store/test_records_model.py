"""Dead letters beside a plain model of them: put down, dropped, tried, deleted, killed and opened again."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.compiler.clock import VirtualLoop
from headrace.compiler.store.group import Group
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import DroppedLetters, Letter, LetterAmount, LetterTry
from headrace.compiler.store.storeerrors import StoreFull
from tests.compiler.store.killed import kill
from tests.compiler.store.letters import ROOM, letter, opened, size
from tests.examples import examples

T = TypeVar("T")

PIPELINES = ("p", "q")
STAGES = ("input", "output")
MESSAGES = ("late", "no number")
LARGE = 300 * 1024
BOUND = 20_000
pipelines = st.sampled_from(PIPELINES)
stages = st.sampled_from(STAGES)
maybe = st.booleans()


class Known(NamedTuple):
    """A letter that the model knows."""

    letter: Letter
    body: bytes


def amount(known: list[Known]) -> LetterAmount:
    sizes = sum(size(each.letter, each.body) for each in known)
    return LetterAmount(len(known), sum(each.letter.messages for each in known), sizes)


class RecordsMachine(RuleBasedStateMachine):
    """A store in a file, on a virtual loop. A letter has its running number in its detail."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.told: list[str] = []
        self.stored: dict[int, Known] = {}
        """By id, what is there."""
        self.pending: list[tuple[Group, list[Known]]] = []
        """What was put down and not waited for: in no life of which it was killed need it be there."""
        self.count = self.last = 0
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> None:
        self.store = await opened(self.folder, self.told)
        self.dropped: list[DroppedLetters] = []
        self.records = Records(self.store, self.dropped.append)
        self.journal = await Journal.open(self.store, "p", "http", "journal", ROOM)

    def new(self, pipeline: str, stage: str, message: str, length: int) -> Known:
        self.count += 1
        one = letter(
            pipeline=pipeline,
            stage=stage,
            message=message,
            detail=f"{self.count}",
            messages=self.count % 5,
            first_seen=float(self.count),
            last_seen=float(self.count),
        )
        return Known(one, b"%d" % self.count + bytes(length))

    @rule(
        pipeline=pipelines,
        stage=stages,
        message=st.sampled_from(MESSAGES),
        lengths=st.lists(st.sampled_from([0, 10, 1_000, 5_000, LARGE]), min_size=1, max_size=20),
        is_waited_for=maybe,
    )
    def append(
        self, pipeline: str, stage: str, message: str, lengths: list[int], is_waited_for: bool
    ) -> None:
        known = [self.new(pipeline, stage, message, each) for each in lengths]

        async def work() -> None:
            for each in known:
                group = self.records.append(*each, ROOM)
                self.pending.append((group, [each]))
            if is_waited_for:
                await group.stored()

        self.run(work())
        if is_waited_for:
            self.settle()

    def settle(self) -> None:
        """Learn the ids of what is stored by now, which are those that come next."""

        async def work() -> None:
            for group, _ in self.pending:
                await group.stored()

        self.run(work())
        known = [each for _, letters in self.pending for each in letters]
        self.pending.clear()
        first = self.store.last_letter + 1 - len(known)
        assert first > self.last
        self.stored |= dict(enumerate(known, first))
        self.last = self.store.last_letter

    @rule(
        pipeline=pipelines,
        lengths=st.lists(st.sampled_from([0, 900, 6_000]), min_size=1, max_size=8),
    )
    def append_within_the_bound(self, pipeline: str, lengths: list[int]) -> None:
        self.settle()
        known = [self.new(pipeline, "input", "late", each) for each in lengths]

        async def work() -> None:
            for each in known:
                group = self.records.append(*each, BOUND, drops_oldest=True)
            await group.stored()

        before = amount(self.of(pipeline)).bytes
        self.run(work())
        first = self.store.last_letter + 1 - len(known)
        self.stored |= dict(enumerate(known, first))
        self.last = self.store.last_letter
        dropped, self.dropped[:] = [*self.dropped], []
        ids = [id for id, each in sorted(self.stored.items()) if each.letter.pipeline == pipeline]
        gone = [self.stored.pop(id) for id in ids[: sum(each.letters for each in dropped)]]
        assert sum(each.messages for each in dropped) == amount(gone).messages
        left = amount(self.of(pipeline)).bytes
        new = amount(known).bytes
        assert left <= max(BOUND, before - new)  # one that was above it gets nearer
        if gone and left < BOUND:
            # No more than was needed: with the last that went, or the large one, it would not fit.
            assert before + new > BOUND

    @rule(pipeline=pipelines)
    def a_full_one_takes_nothing(self, pipeline: str) -> None:
        self.settle()
        one = self.new(pipeline, "output", "late", 0)
        used = self.records.bytes(pipeline)

        async def work() -> None:
            try:
                self.records.append(*one, used + size(*one) - 1)
            except StoreFull:
                return
            raise AssertionError("it was taken")

        self.run(work())

    def of(
        self, pipeline: str, stage: str | None = None, message: str | None = None
    ) -> list[Known]:
        return [
            each
            for each in self.stored.values()
            if each.letter.pipeline == pipeline
            and stage in (None, each.letter.stage)
            and message in (None, each.letter.message)
        ]

    @precondition(lambda self: self.stored)
    @rule(choice=st.randoms(use_true_random=False))
    def try_again(self, choice: Any) -> None:
        id = choice.choice(sorted(self.stored))
        one, body = self.stored[id]
        now = one._replace(tries=one.tries + 1, last_seen=one.last_seen + 0.5, maybe_written=True)
        self.run(self.records.update(id, now.tries, now.last_seen, maybe_written=True))
        self.stored[id] = Known(now, body)
        self.settle()

    @precondition(lambda self: self.stored)
    @rule(
        choice=st.randoms(use_true_random=False),
        length=st.sampled_from([0, 10, 5_000, LARGE]),
        is_gone=maybe,
    )
    def some_of_it_is_left(self, choice: Any, length: int, is_gone: bool) -> None:
        self.settle()
        id = choice.choice(sorted(self.stored))
        one = self.stored[id].letter
        body = b"r" * length
        tried = LetterTry(one.tries + 1, one.last_seen + 0.5, maybe_written=True)

        async def work() -> None:
            if is_gone:
                self.records.let_go([id])
                await self.records.written()
            await self.records.keep_rest(id, tried, 1, body).stored()

        self.run(work())
        if is_gone:
            del self.stored[id]
        else:
            self.stored[id] = Known(one._replace(**tried._asdict(), messages=1), body)

    @precondition(lambda self: self.stored)
    @rule(choice=st.randoms(use_true_random=False), is_let_go=maybe)
    def delete_some(self, choice: Any, is_let_go: bool) -> None:
        self.settle()
        ids = choice.sample(sorted(self.stored), min(3, len(self.stored)))

        async def work() -> None:
            if is_let_go:  # with an entry that is put down
                group = self.journal.append(b"replayed")
                self.records.let_go(ids, group)
                await group.stored()
            else:
                for pipeline in PIPELINES:
                    wanted = [id for id in ids if self.stored[id].letter.pipeline == pipeline]
                    found = await self.records.delete(pipeline, ids)
                    assert found == amount([self.stored[id] for id in wanted])

        self.run(work())
        for id in ids:
            del self.stored[id]

    @rule(
        pipeline=pipelines,
        stage=st.none() | stages,
        message=st.none() | st.sampled_from(MESSAGES),
    )
    def delete_all(self, pipeline: str, stage: str | None, message: str | None) -> None:
        self.settle()
        meant = self.of(pipeline, stage, message)
        assert self.run(self.records.delete_all(pipeline, stage, message)) == amount(meant)
        self.stored = {id: each for id, each in self.stored.items() if each not in meant}

    @rule(is_killed=maybe)
    def end_and_open(self, is_killed: bool) -> None:
        if not is_killed:
            self.run(self.store.close())
            self.settle()
            self.run(self.open())
            return

        async def killed() -> None:
            kill(self.store)

        self.run(killed())
        known = {each.letter.detail: each for _, letters in self.pending for each in letters}
        self.pending.clear()
        self.run(self.open())
        for id in range(self.last + 1, self.store.last_letter + 1):
            whole = self.run(self.records.letter(id))
            assert whole is not None
            assert whole.found is not None
            self.stored[id] = known.pop(whole.found.letter.detail)
        self.last = self.store.last_letter

    @rule(
        pipeline=pipelines, stage=st.none() | stages, message=st.none() | st.sampled_from(MESSAGES)
    )
    def list_them(self, pipeline: str, stage: str | None, message: str | None) -> None:
        self.settle()
        expected = self.of(pipeline, stage, message)

        async def work() -> list[tuple[int, Known]]:
            found: list[tuple[int, Known]] = []
            page = await self.records.page(pipeline, stage, message, limit=7)
            while True:
                assert (page.total, page.bytes) == amount(expected)[::2]
                for one in page.letters:
                    whole = await self.records.letter(one.id)
                    assert whole is not None
                    assert whole.found == one
                    assert whole.body is not None
                    found.append((one.id, Known(one.letter, whole.body)))
                if not page.is_truncated:
                    return found
                page = await self.records.page(pipeline, stage, message, page.before, 7)

        found = self.run(work())
        assert [each for _, each in found] == [self.stored[id] for id, _ in found]
        assert [id for id, _ in found] == sorted((id for id, _ in found), reverse=True)
        assert len(found) == len(expected)

    @rule(pipeline=pipelines)
    def list_what_failed_alike(self, pipeline: str) -> None:
        self.settle()
        found = self.run(self.records.signatures(pipeline))
        assert len({(each.stage, each.message) for each in found}) == len(found)
        for each in found:
            alike = self.of(pipeline, each.stage, each.message)
            assert (each.letters, each.messages, each.bytes) == amount(alike)
            assert each.first_seen <= min(one.letter.first_seen for one in alike)
            assert each.last_seen >= max(one.letter.last_seen for one in alike)
        assert sum(each.letters for each in found) == len(self.of(pipeline))

    @invariant()
    def the_figures_are_right(self) -> None:
        for pipeline in PIPELINES:
            pending = [each for _, some in self.pending for each in some]
            own = [each for each in pending if each.letter.pipeline == pipeline]
            expected = amount(self.of(pipeline)).bytes + amount(own).bytes
            assert self.records.bytes(pipeline) == expected

    @invariant()
    def nothing_is_told(self) -> None:
        assert self.told == []
        assert self.dropped == []

    def teardown(self) -> None:
        try:
            self.settle()
            for pipeline in PIPELINES:
                self.list_them(pipeline, None, None)
                self.list_what_failed_alike(pipeline)
            for pipeline in PIPELINES:
                self.delete_all(pipeline, None, None)
            run = self.store.database._run
            for table in ("letters", "bodies", "signatures"):
                assert run.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
            assert self.records.pipelines() == []
            self.run(self.store.close())
            self.runner.close()
        finally:
            shutil.rmtree(self.folder)


RecordsMachine.TestCase.settings = examples(50, stateful_step_count=30)
TestRecords = RecordsMachine.TestCase
