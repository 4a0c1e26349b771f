"""Durable inputs of pipelines that are deleted, fail, or end badly, and stores that fail meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from threading import Event

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.beingstored import STORED_SECONDS
from headrace.compiler.runtime.wayin import NoRoom
from headrace.compiler.store.database import Database
from headrace.compiler.store.openqueues import OpenQueues
from headrace.compiler.store.storedrows import Changes
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.runtime.durable import Gated, durable, engine_on, kept, post
from tests.stand_ins import run, running
from tests.virtual import virtual


class TurnedAway(Gated):
    """Cannot be started for ten seconds, and is told no then."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def start(self) -> None:
        if self._clock.monotonic() < 10:
            raise OSError("refused")
        raise BuildRefused(Fault("turned-away", "no"))


@virtual
async def test_who_is_created_while_its_namesake_is_deleted_gets_nothing_of_it(
    tmp_path: Path,
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        for n in range(40):
            await post(it, n)
        deleting = asyncio.ensure_future(it.dispose("p"))
        await asyncio.sleep(0)
        await run(it, durable(out))
        await post(it, "new")
        await it.clock.sleep(0.5)
        stuck.gate.set()
        await deleting
        await it.clock.sleep(5)
        left = await kept(it)

    assert out.messages == ["new"]
    assert left == {("p", True): 40, ("p", False): 0}


@virtual
async def test_what_a_pipeline_kept_that_failed_is_not_its_namesakes(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path) as it:
        await run(it, durable(TurnedAway(it.clock)))
        for n in range(5):
            await post(it, n)
        await it.clock.sleep(60)
        [figures] = await it.pipelines()
        await it.dispose("p")
        deleted = await kept(it)
        await run(it, durable(out))
        await it.clock.sleep(5)

    assert figures.status == "failed"
    assert deleted == {("p", True): 5}
    assert out.messages == []


@virtual
async def test_a_pipeline_that_failed_goes_on_when_it_is_exchanged(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path) as it:
        await run(it, durable(TurnedAway(it.clock)))
        await post(it, 1)
        await it.clock.sleep(60)
        with pytest.raises(NoRoom, match="pipeline 'p': it has failed, nothing was taken"):
            await post(it, 2)
        await it.exchange("p", durable(out, capacity=1000), None)
        await post(it, 3)
        await it.clock.sleep(5)

    assert out.messages == [1, 3]


@virtual
async def test_what_failed_and_keeps_nothing_has_no_way_in(tmp_path: Path) -> None:
    async with engine_on(tmp_path) as it:
        await run(it, durable(TurnedAway(it.clock), durable=None))
        await it.clock.sleep(60)
        [figures] = await it.pipelines()

        assert figures.status == "failed"
        assert it.way_in("p") is None


@virtual
async def test_an_output_that_does_not_finish_keeps_no_journal(tmp_path: Path) -> None:
    class Hangs(Gated):
        async def finish(self) -> None:
            await asyncio.Event().wait()

    out = Gated()
    async with engine_on(tmp_path, durable(Hangs(is_open=False))) as it:
        for n in range(5):
            await post(it, n)
        await it.dispose("p")
        figures = await it.stored()
        assert figures is not None
        [part] = figures.parts
        await it.discard_stored(part.id)
        await run(it, durable(out))
        await post(it, "new")
        await it.clock.sleep(5)

    assert (part.left_over, part.entries) == (True, 5)
    assert out.messages == ["new"]


@virtual
async def test_large_posts_are_taken_while_an_output_is_away(tmp_path: Path) -> None:
    class Lengths(Gated):
        """Keeps no batch: it is in memory as long as anybody has it."""

        async def write(self, batch) -> None:
            await self.gate.wait()
            self.batches.append([len(batch[0])])

    out = Lengths(is_open=False)
    body = b'["' + b"x" * 300_000 + b'"]'
    async with engine_on(tmp_path, durable(out, max_queued_bytes=1_000_000)) as it:
        taken = [await post(it, body) for _ in range(20)]
        out.gate.set()
        await it.clock.sleep(5)

    assert taken == [1] * 20
    assert out.messages == [300_000] * 20


@virtual
async def test_a_buffer_that_waits_for_more_than_may_be_kept_hands_on(
    tmp_path: Path, caplog
) -> None:
    out = Gated()
    config = durable(out, buffer={"type": "static", "size": 100}, durable={"max_bytes": 2_000})
    async with engine_on(tmp_path, config) as it:
        accepted = refused = 0
        for _ in range(60):
            try:
                accepted += await post(it, "x" * 100)
            except NoRoom:
                refused += 1
            await it.clock.sleep(0.3)

    assert refused < 30 < accepted
    assert len(out.messages) == accepted
    assert (
        caplog.text.count("buffers hand on what they hold: they wait for more than may be kept")
        == 1
    )


@virtual
async def test_a_disk_that_hangs_is_given_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, hangs, goes_on = Database.commit, [False], Event()

    def hanging(self: Database, changes: Changes) -> None:
        if hangs[0]:
            goes_on.wait(30)
        commit(self, changes)

    # The time goes on although something is awaited of a thread.
    monkeypatch.setattr(Database, "commit", hanging)
    out = Gated()
    async with engine_on(tmp_path, durable(out)) as it:
        hangs[0] = True
        first = asyncio.ensure_future(post(it, "first"))
        await asyncio.sleep(0)
        [reader] = running(it, "p").parts.readers
        reader._source._commits[0]._late()
        said = []
        for _ in range(3):
            with pytest.raises(NoRoom) as refused:
                await post(it, "again")
            said.append(str(refused.value))
        hangs[0] = False
        goes_on.set()
        with pytest.raises(
            NoRoom, match=rf"was not stored within {STORED_SECONDS:g} s, and may be yet"
        ):
            await first
        await it.clock.sleep(1)
        assert await post(it, "later") == 1
        await it.clock.sleep(1)

    assert said == ["pipeline 'p': the disk has not answered for 5 s, nothing was taken"] * 3
    assert out.messages == ["first", "later"]


@virtual
async def test_a_store_that_fails_at_first_is_tried_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Database, *key: str) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    out = Gated()
    async with engine_on(tmp_path, durable(Gated(), id="q")) as it:
        with monkeypatch.context() as patched:
            patched.setattr(Database, "queue", failing)
            await run(it, durable(out))
            await it.clock.sleep(120)
            with pytest.raises(NoRoom, match="disk I/O error, nothing was taken"):
                await post(it, 1)
            [_, figures] = await it.pipelines()
        await it.clock.sleep(3)
        assert await post(it, 2) == 1
        await it.clock.sleep(1)

    assert figures.live.inputs[0].state == "coming"
    assert "disk I/O error" in str(figures.live.inputs[0].why)
    assert out.messages == [2]


@virtual
async def test_who_asks_for_figures_has_nothing_looked_through_that_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, listed = [], OpenQueues.listed

    async def counted(self: OpenQueues):
        looked.append(1)
        return await listed(self)

    monkeypatch.setattr(OpenQueues, "listed", counted)
    async with engine_on(tmp_path, durable(Gated(is_open=False))) as it:
        told = []
        for n in range(5):
            await post(it, n)
            figures = await it.stored()
            assert figures is not None
            told.append([(each.entries, each.oldest is None) for each in figures.parts])

    assert told == [[(n + 1, False)] for n in range(5)]
    assert len(looked) == 1


@virtual
async def test_figures_do_not_wait_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(self: OpenQueues):
        await asyncio.Event().wait()

    async with engine_on(tmp_path, durable(Gated())) as it:
        monkeypatch.setattr(OpenQueues, "listed", hanging)
        began = it.clock.monotonic()
        figures = await it.stored()
        took = it.clock.monotonic() - began

    assert figures is not None
    assert figures.parts == []
    assert took == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("buffer", "seconds"),
    [
        ({"type": "static", "size": 100}, 30),
        ({"type": "tumbling", "window_seconds": 60}, 200),
    ],
)
@virtual
async def test_what_a_buffer_held_at_two_kills_goes_on(
    tmp_path: Path, buffer: dict[str, object], seconds: float
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(stuck)) as it:
        for n in range(20):
            await post(it, n)
    with sqlite3.connect(tmp_path / "store" / "0" / "store.db") as database:
        database.execute("UPDATE entries SET deaths = 2")
    database.close()
    async with engine_on(tmp_path, durable(out, buffer=buffer)) as it:
        await it.clock.sleep(seconds)
        written = list(out.messages)

    assert written == [*range(20)]
