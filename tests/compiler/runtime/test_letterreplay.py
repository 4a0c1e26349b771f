"""Dead letters that are replayed: what goes through is gone, what fails again stays."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import (
    BatchFailed,
    NoReplayTarget,
    ReplayUnderWay,
    UnknownDeadLetter,
    UnknownPipeline,
)
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.letterreplay import letterreplay
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest, ReplayTarget
from headrace.compiler.runtime.letterreplay.replays import Replays
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.runtime.queuedbatch import entry_of_batch
from headrace.compiler.store.openstore import Store
from headrace.connectors.http import HttpInput
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.lettered import lettered, lost, put_down
from tests.compiler.runtime.test_deadletters import Refusing, casts
from tests.compiler.store.letters import ROOM, letter
from tests.promises import promise
from tests.stand_ins import does, reads, run, running, takes
from tests.virtual import virtual


class Replaying:
    """Replays in the one pipeline of an engine."""

    def __init__(self, it: Engine) -> None:
        self.it = it
        self.replays = Replays(it.graph.pipelines, it._world)

    async def begin(self, **options: Any) -> BegunReplay:
        """Begin a replay of all letters, unless something else is said."""
        records = self.it._storage.records
        assert records is not None
        return await self.replays.begin(
            records, ReplayRequest(**{"pipeline": "p", "source": "p", **options})
        )

    async def to_its_end(self, **options: Any) -> ReplayFigures:
        """Replay, and return what became of it."""
        await self.begin(**options)
        for _ in range(1_000):
            figures = self.replays.figures("p")
            assert figures is not None
            if figures.state != "running":
                break
            await self.it.clock.sleep(0.1)
        return figures


@promise("delivery.letters.replay")
@virtual
async def test_what_an_output_takes_now_is_written_there_alone_and_gone(tmp_path: Path) -> None:
    out, other = Refusing(2, 3), Gated()
    async with engine_on(tmp_path, lettered([takes(out), takes(other)])) as it:
        await post(it, [1, 2, 3])
        await it.clock.sleep(1)
        out.refused = ()
        figures = await Replaying(it).to_its_end()

        assert figures == ReplayFigures(1, 1, 1, 0, "done")
        assert (out.written, other.messages) == ([1, 2, 3], [1, 2, 3])
        assert await put_down(it) == []


@promise("delivery.letters.replay")
@virtual
async def test_what_fails_again_is_the_same_letter_with_one_more_try(tmp_path: Path) -> None:
    out = Refusing(2)
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [1, 2])
        await it.clock.sleep(1)
        replaying = Replaying(it)
        figures = await replaying.to_its_end()
        records = it._storage.records
        assert records is not None
        [letter] = (await records.page("p")).letters

        assert (figures.done, figures.failed, figures.state) == (0, 1, "done")
        assert letter.letter.tries == 2
        assert letter.letter.last_seen > letter.letter.first_seen
        assert (out.written, lost(it)) == ([1], {})


@virtual
async def test_of_a_letter_of_several_messages_what_fails_again_is_left(tmp_path: Path) -> None:
    out = Refusing(2, 3, 4)
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [1, 2, 3, 4])
        await it.clock.sleep(1)
        out.refused = (3,)
        await Replaying(it).to_its_end()

        assert out.written == [1, 2, 4]
        assert [each.content for each in await put_down(it)] == [[3]]


async def known(it: Engine) -> list[tuple[int, int, int]]:
    """Return of each letter its id, its tries, and how many messages it has."""
    records = it._storage.records
    assert records is not None
    page = await records.page("p")
    return [(each.id, each.letter.tries, each.letter.messages) for each in page.letters]


@promise("delivery.letters.replay")
@virtual
async def test_what_is_left_of_a_letter_is_the_same_letter(tmp_path: Path) -> None:
    out = Refusing(2, 3, 4)
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [1, 2, 3, 4])
        await it.clock.sleep(1)
        before = await known(it)
        out.refused = (3,)
        await Replaying(it).to_its_end()

        assert (before, await known(it)) == ([(1, 1, 3)], [(1, 2, 1)])
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        assert await known(it) == [(1, 2, 1)]


@pytest.mark.parametrize("refused", [(3,), (2, 3, 4)])
@virtual
async def test_a_letter_that_is_deleted_while_it_is_replayed_stays_deleted(
    tmp_path: Path, refused: tuple[int, ...]
) -> None:
    out = Refusing(2, 3, 4)
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [2, 3, 4])
        await it.clock.sleep(1)
        out.refused = refused
        replaying, records = Replaying(it), it._storage.records
        assert records is not None
        await replaying.begin(rate=1)
        await it.clock.sleep(1.5)  # it is in hand
        deleted = await records.delete("p", [1])
        await it.clock.sleep(10)

        assert deleted.letters == 1
        assert replaying.replays.figures("p") == ReplayFigures(1, 1, 0, 1, "done")
        assert await known(it) == []


@virtual
async def test_a_letter_of_a_transform_goes_in_before_it(tmp_path: Path) -> None:
    out, fails = Gated(), [True]
    counted: Batch = []

    def first(batch: Batch) -> list[Batch]:
        counted.extend(batch)
        return [[each + 1 for each in batch]]

    def second(batch: Batch) -> list[Batch]:
        if fails[0]:
            raise BatchFailed("not yet")
        return [[each * 10 for each in batch]]

    config = lettered([takes(out)], [does(first), does(second)])
    async with engine_on(tmp_path, config) as it:
        await post(it, [1, 2])
        await it.clock.sleep(1)
        fails[0] = False
        figures = await Replaying(it).to_its_end()

        assert counted == [1, 2]
        assert out.batches == [[20, 30]]
        assert figures.done == 1
        assert await put_down(it) == []


@promise("delivery.letters.replay")
@virtual
async def test_what_fails_further_on_is_a_letter_of_its_own(tmp_path: Path) -> None:
    out = Refusing({"n": 7})
    async with engine_on(tmp_path, lettered([takes(out)], [casts()])) as it:
        await post(it, {"n": "seven"})
        await it.clock.sleep(1)
        figures = await Replaying(it).to_its_end(edited=[{"n": "7"}])

        assert (figures.done, figures.failed) == (1, 0)
        assert [(x.place, x.content) for x in await put_down(it)] == [("output[0]", [{"n": 7}])]


@virtual
async def test_an_edited_letter_stays_as_it_was_until_it_goes_through(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, lettered([takes(out)], [casts()])) as it:
        await post(it, {"n": "seven"})
        await it.clock.sleep(1)
        replaying = Replaying(it)
        await replaying.to_its_end(edited=[{"n": "eight"}])
        before = await put_down(it)
        await replaying.to_its_end(edited=[{"n": "8"}])

        assert [each.content for each in before] == [[{"n": "seven"}]]
        assert out.messages == [{"n": 8}]
        assert await put_down(it) == []


@virtual
async def test_what_a_buffer_holds_is_let_go_of_at_the_end_of_a_replay(tmp_path: Path) -> None:
    out = Refusing()
    buffer = Buffer.load({"max_messages": 100, "seconds": 3600})
    async with engine_on(tmp_path, lettered([takes(out)], [casts(), buffer])) as it:
        await post(it, [{"n": 1}, {"n": "two"}, {"n": "three"}])
        await it.clock.sleep(1)
        figures = await Replaying(it).to_its_end(edited=[{"n": 2}, {"n": 3}])

        assert (figures.done, figures.state) == (1, "done")
        assert out.written == [{"n": 2}, {"n": 3}]
        assert running(it, "p").parts.held == 1


@virtual
async def test_a_payload_arrives_once_more(tmp_path: Path) -> None:
    from tests.stand_ins import RawTold

    out = Gated()
    async with engine_on(tmp_path) as it:
        source = RawTold(it.clock, [[(b"{", None)]])
        await run(it, lettered([takes(out)], inputs=[reads(source)]))
        await it.clock.sleep(1)
        replaying = Replaying(it)
        again = await replaying.to_its_end()
        mended = await replaying.to_its_end(edited=[{"n": 1}])

        assert (again.failed, mended.done) == (1, 1)
        assert out.messages == [{"n": 1}]
        assert await put_down(it) == []


@virtual
async def test_a_payload_of_which_no_message_is_made_stays(tmp_path: Path) -> None:
    from tests.stand_ins import RawTold, formatted

    out = Gated()
    async with engine_on(tmp_path) as it:
        source = RawTold(it.clock, [[(b"a,b\n1,2\n3\n4,5", None)]])
        component = formatted(source, "csv", {})
        await run(it, lettered([takes(out)], inputs=[component]))
        await it.clock.sleep(1)
        written = [*out.messages]
        figures = await Replaying(it).to_its_end()

        assert (figures.done, figures.failed) == (0, 1)
        assert out.messages == written
        assert [each.content for each in await put_down(it)] == [b"3"]


@virtual
async def test_a_buffer_that_holds_more_than_a_replay_does_hands_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letterreplay, "MOST_IN_HAND", 3)
    out, fails = Gated(), [True]

    def step(batch: Batch) -> list[Batch]:
        if fails[0]:
            raise BatchFailed("not yet")
        return [batch]

    buffer = Buffer.load({"size": 100, "seconds": 3600})
    async with engine_on(tmp_path, lettered([takes(out)], [does(step), buffer])) as it:
        for n in range(8):
            await post(it, n)
        await it.clock.sleep(1)
        fails[0] = False
        figures = await Replaying(it).to_its_end()

        assert (figures.done, figures.state) == (8, "done")
        assert out.batches == [[0, 1, 2], [3, 4, 5], [6, 7]]


@virtual
async def test_what_fails_further_on_where_the_disk_takes_nothing_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]

    def first(batch: Batch) -> list[Batch]:
        if fails[0]:
            raise BatchFailed("not yet")
        return [batch]

    def second(batch: Batch) -> list[Batch]:
        raise BatchFailed("never")

    async with engine_on(tmp_path, lettered([], [does(first), does(second)])) as it:
        await post(it, [1])
        await it.clock.sleep(1)
        fails[0] = False
        storage = it._storage
        monkeypatch.setattr(type(storage), "is_open", property(lambda _: False))
        figures = await Replaying(it).to_its_end()

        assert (figures.done, figures.failed) == (0, 1)
        assert [(x.place, x.content) for x in await put_down(it)] == [("transform[0]", [1])]
        assert lost(it) == {}


@virtual
async def test_a_post_that_ended_the_process_arrives_as_the_messages_that_it_has(
    tmp_path: Path,
) -> None:
    durable, out = HttpInput.load({"durable": True}), Gated()
    async with engine_on(tmp_path, lettered([takes(Gated(is_open=False))], inputs=[durable])) as it:
        await post(it, [1, 2])
    with closing(sqlite3.connect(tmp_path / "store" / "0" / "store.db")) as database, database:
        database.execute("UPDATE entries SET deaths = 3")
    async with engine_on(tmp_path, lettered([takes(out)], inputs=[durable])) as it:
        await it.clock.sleep(5)
        [letter] = await put_down(it)
        figures = await Replaying(it).to_its_end()

        assert (letter.place, letter.content) == ("process[0]", b"[1,2]")
        assert (figures.done, out.messages) == (1, [1, 2])
        assert await put_down(it) == []


@virtual
async def test_messages_are_sent_at_a_rate(tmp_path: Path) -> None:
    out = Refusing(*range(50))
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [*range(50)])
        await it.clock.sleep(1)
        out.refused = ()
        began = it.clock.monotonic()
        figures = await Replaying(it).to_its_end(rate=10)

        assert figures.done == 1
        assert 4.8 <= it.clock.monotonic() - began <= 5.2


@virtual
async def test_one_replay_at_a_time_which_can_be_stopped(tmp_path: Path) -> None:
    out = Refusing(*range(50))
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [*range(50)])
        await it.clock.sleep(1)
        out.refused, replaying = (), Replaying(it)
        await replaying.begin(rate=1)
        with pytest.raises(ReplayUnderWay):
            await replaying.begin()
        await it.clock.sleep(10)
        stopped = replaying.replays.stop("p")
        await it.clock.sleep(1)
        figures = replaying.replays.figures("p")

        assert stopped
        assert not replaying.replays.stop("p")
        assert figures is not None
        assert figures.state == "stopped"
        assert len(await put_down(it)) == 1
        assert (await replaying.to_its_end()).state == "done"


@virtual
async def test_the_end_of_a_pipeline_ends_its_replay(tmp_path: Path) -> None:
    out = Refusing(*range(50))
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, [*range(50)])
        await it.clock.sleep(1)
        replaying = Replaying(it)
        await replaying.begin(rate=1)
        await it.clock.sleep(2)
        await it.dispose("p")
        figures = replaying.replays.figures("p")

        assert figures is not None
        assert figures.state == "stopped"
        assert len(await put_down(it)) == 1


@virtual
async def test_what_has_gone_through_is_not_listed_any_more_when_it_is_done(tmp_path: Path) -> None:
    out = Refusing(1)
    async with engine_on(tmp_path, lettered([takes(out)])) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        out.refused = ()
        replaying = Replaying(it)
        await replaying.begin()
        for _ in range(10_000):
            figures = replaying.replays.figures("p")
            if figures is not None and figures.state == "done":
                break
            await it.clock.sleep(0)

        assert figures is not None
        assert figures.state == "done"
        assert await put_down(it) == []


@virtual
async def test_of_a_replay_that_is_over_its_pipeline_is_not_kept(tmp_path: Path) -> None:
    async with engine_on(tmp_path, lettered([takes(Refusing(1))])) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        replaying = Replaying(it)
        figures = await replaying.to_its_end()
        pipeline = weakref.ref(running(it, "p"))
        await it.dispose("p")
        await it.clock.sleep(1)
        gc.collect()

        assert pipeline() is None
        assert replaying.replays.figures("p") == figures
        assert replaying.replays.gone_through == 0


@virtual
async def test_where_the_target_is_gone_or_another_one_that_is_said(tmp_path: Path) -> None:
    async with engine_on(tmp_path, lettered([takes(Gated()), takes(Refusing(1))])) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        await it.dispose("p")
        out = Gated()
        await run(it, lettered([takes(out)]))
        replaying = Replaying(it)
        with pytest.raises(
            NoReplayTarget, match=r"output 1 \(taking\) of pipeline 'p' is not there"
        ):
            await replaying.begin()
        with pytest.raises(NoReplayTarget, match="has no output 7"):
            await replaying.begin(target=ReplayTarget("output", 7))
        with pytest.raises(UnknownPipeline):
            await replaying.begin(pipeline="q")
        begun = await replaying.begin(target=ReplayTarget("output", 0))
        await it.clock.sleep(1)

        assert (begun.config_changed, begun.changed) == (True, ["outputs"])
        assert out.messages == [1]
        assert await put_down(it) == []


@virtual
async def test_letters_of_another_pipeline_go_in_as_its_own(tmp_path: Path) -> None:
    out = Gated()
    config = lettered([takes(out)], id="q")
    async with engine_on(tmp_path, lettered([takes(Refusing(1))]), config) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        await Replaying(it).begin(pipeline="q")
        await it.clock.sleep(1)

        assert out.messages == [1]
        assert await put_down(it) == []


class CountedWork:
    """Counts what the database does for reads: calls of its machine, some for each row it looks at."""

    EACH = 10

    def __init__(self, store: Store) -> None:
        self.steps, self._read, self._store = 0, store.read, store

    async def read(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Read, and count what that takes."""

        def counted(run: sqlite3.Connection) -> Any:
            run.set_progress_handler(self._count, self.EACH)
            try:
                return work(run)
            finally:
                run.set_progress_handler(None, 0)

        return await self._read(counted)

    def _count(self) -> None:
        self.steps += self.EACH


@pytest.mark.parametrize("asked", [[1], [1_000], [5, 500, 995], [1, 2_000], [2_000]], ids=str)
@virtual
async def test_of_letters_with_ids_those_alone_are_read(
    tmp_path: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path, lettered([takes(Gated(is_open=False))])) as it:
        replaying, records = Replaying(it), it._storage.records
        assert records is not None
        for n in range(1_000):
            body = entry_of_batch([n])
            assert body is not None
            group = records.append(letter(pipeline="p", target=None), body, ROOM)
        await group.stored()
        work = CountedWork(records._store)
        monkeypatch.setattr(records._store, "read", work.read)
        begun = await replaying.begin(ids=asked)
        taken = work.steps
        request = ReplayRequest("p", "p", ids=asked[:1])
        if begun.selected:
            look = await replaying.replays.look(records, request)
            assert [*look.messages] == [asked[0] - 1]
        else:
            with pytest.raises(UnknownDeadLetter):
                await replaying.replays.look(records, request)

        assert begun.selected == sum(each <= 1_000 for each in asked)
        assert 0 < taken <= work.steps < 2_000  # one page of 200 takes 15,000
