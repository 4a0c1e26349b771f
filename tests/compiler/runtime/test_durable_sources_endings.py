"""Ends of a durable input that reads a broker: what is stored comes again, what is not is counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.borrowed import BorrowedJournal
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storeerrors import StoreFailed
from tests.compiler.runtime.connected import Broker
from tests.compiler.runtime.durable import Gated, engine_on, failing_commits, kept
from tests.compiler.runtime.lasting import Forgetful, lasting
from tests.compiler.runtime.test_upstream_ack import buffer
from tests.stand_ins import pipeline, run, running, takes
from tests.virtual import virtual


def losses(it: Pipeline) -> int:
    """Return how many messages a pipeline has lost."""
    return sum(each.count for each in it.failures.losses)


@virtual
async def test_a_stop_does_not_wait_for_a_disk_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = failing_commits(monkeypatch)
    took = {}
    for count in (5, 40):
        fails[0] = False
        source, out = Broker(Clock(asyncio.get_running_loop())), Gated()
        folder = tmp_path / str(count)
        folder.mkdir()
        async with engine_on(folder, lasting(source, to=out)) as it:
            fails[0] = True
            for n in range(count):
                source.send(b"%d" % n)
                await it.clock.sleep(0.01)
            await it.clock.sleep(3)
            begun = it.clock.monotonic()
            await it.dispose("p")
            took[count] = it.clock.monotonic() - begun
            fails[0] = False
    assert max(took.values()) < 2, took


@virtual
async def test_a_deleted_pipeline_writes_what_its_buffer_holds_where_all_is_full(
    tmp_path: Path,
) -> None:
    written = {}
    for count in (12, 60):
        source, out = Broker(Clock(asyncio.get_running_loop())), Gated()
        folder = tmp_path / str(count)
        folder.mkdir()
        options = {"durable": {"max_bytes": 400}}
        config = lasting(source, to=out, **options)
        config = pipeline(
            "p", config.inputs, [buffer(seconds=3600, max_messages=1000)], [takes(out)]
        )
        async with engine_on(folder, config) as it:
            for _ in range(count):
                source.send(b'"%b"' % (b"x" * 100))
                await it.clock.sleep(0.01)
            await it.clock.sleep(3)
            assert out.messages == []
            await it.dispose("p")
            written[count] = len(out.messages), await kept(it)
    assert written == {12: (2, {}), 60: (2, {})}


@virtual
async def test_a_batch_that_is_too_large_is_counted(tmp_path: Path) -> None:
    source, out = Broker(Clock(asyncio.get_running_loop())), Gated()
    source.is_raw = False
    async with engine_on(tmp_path, lasting(source, to=out, durable={"max_bytes": 200})) as it:
        source.send([1], ["x" * 100] * 7, [2])
        await it.clock.sleep(1)
        p = running(it, "p")
        [figures] = await it.pipelines()
    assert out.messages == [1, 2]
    assert (figures.skipped, losses(p)) == (7, 7)


@virtual
async def test_what_has_no_room_at_the_end_is_counted_in_messages(tmp_path: Path) -> None:
    source, stuck = Broker(Clock(asyncio.get_running_loop())), Gated(is_open=False)
    source.is_raw = False
    config = lasting(source, to=stuck, kind=Forgetful, durable={"max_bytes": 400})
    async with engine_on(tmp_path, config) as it:
        source.send(*(["x" * 25] * 7 for _ in range(10)))
        await it.clock.sleep(1)
        p = running(it, "p")
        [stored] = (await kept(it)).values()
    assert losses(p) == (10 - stored) * 7


@virtual
async def test_a_journal_that_can_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrow, fails = Storage.borrow, [True]

    async def failing(self: Storage, *args: Any) -> BorrowedJournal:
        if fails[0]:
            raise StoreFailed("no disk")
        return await borrow(self, *args)

    monkeypatch.setattr(Storage, "borrow", failing)
    source, out = Broker(Clock(asyncio.get_running_loop())), Gated()
    async with engine_on(tmp_path) as it:
        await run(it, lasting(source, to=out))
        for n in range(40):
            source.send(b"%d" % n)
            await it.clock.sleep(0.01)
        await it.clock.sleep(2)
        assert out.messages == []
        p = running(it, "p")
        [reader] = p.parts.readers
        assert reader.link(it.clock.millis()).state == "waiting"
        fails[0] = False
        await it.clock.sleep(5)
        assert out.messages == [*range(40)]
        fails[0] = True
        begun = it.clock.monotonic()
        await it.exchange(
            "p", lasting(Broker(it.clock), to=out, durable={"max_bytes": 10_000}), None
        )
        assert it.clock.monotonic() - begun < 6  # it is opened for so long
        begun = it.clock.monotonic()
        await it.dispose("p")
        assert it.clock.monotonic() - begun < 2
