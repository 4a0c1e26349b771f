"""The order of what an output with a queue writes, whatever is late, large, damaged or cannot be stored."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from headrace.compiler.store.database import Database
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.storedrows import Changes
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.test_outputqueue import entries, spooling
from tests.promises import promise
from tests.virtual import virtual


def damage_first(folder: Path) -> None:
    """Have the first entry of a store no longer be what was stored."""
    [file] = folder.rglob(DATABASE)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1 WHERE n = (SELECT min(n) FROM entries)")


@promise("delivery.queue.waits")
@pytest.mark.parametrize(
    "pauses",
    [
        pytest.param([0.004] * 30, id="steadily"),
        pytest.param(
            [*([0.0] * 5), 0.04, *([0.0] * 11), 0.02, *([0.0] * 9)], id="by fits and starts"
        ),
    ],
)
@virtual
async def test_what_the_output_has_is_on_the_disk_before_what_comes_behind_it(
    pauses: list[float], tmp_path: Path
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n, pause in enumerate(pauses):
            await post(it, n)
            await it.clock.sleep(pause)
        await it.clock.sleep(1)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert stuck.messages == []
    assert out.messages == [*range(len(pauses))]


@promise("delivery.queue.failing")
@virtual
async def test_a_commit_that_fails_changes_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, fails, goes_on = Database.commit, [False], Event()

    def failing(self: Database, changes: Changes) -> None:
        if fails[0] and changes.rows:
            fails[0] = False
            goes_on.wait(30)
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, changes)

    monkeypatch.setattr(Database, "commit", failing)
    stuck = Gated(is_open=False)
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(16):
            await post(it, n)
        await it.clock.sleep(1)
        fails[0] = True
        for n in range(16, 25):  # the first is being stored while the others come
            await post(it, n)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        goes_on.set()
        await it.clock.sleep(5)
        before = await entries(it)
        stuck.gate.set()
        await it.clock.sleep(5)
        after = await entries(it)

    assert not fails[0]
    assert (before, after) == (25, 0)
    assert stuck.messages == [*range(25)]


@virtual
async def test_what_is_large_is_stored_once_and_in_its_place(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    large: list[Any] = [{"n": n, "text": "x" * 20} for n in range(20_000)]
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(18):
            await post(it, n)
        await post(it, large)
        for n in range(18, 25):
            await post(it, n)
        await it.clock.sleep(1)
        stored = await entries(it)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert stored == 26
    assert [*map(len, out.batches)] == [*[1] * 18, 20_000, *[1] * 7]
    assert [each[0] for each in out.batches if len(each) == 1] == [*range(25)]


@virtual
async def test_behind_what_is_damaged_everything_goes_on_and_nothing_is_stored_again(
    tmp_path: Path,
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(30):
            await post(it, n)
            await it.clock.sleep(0.1)
    damage_first(tmp_path)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)
        before = await it.stored()
        for n in range(30, 50):
            await post(it, n)
            await it.clock.sleep(1)
        after = await it.stored()

    assert out.messages == [*range(1, 50)]
    assert before is not None
    assert after is not None
    assert after.commits == before.commits
