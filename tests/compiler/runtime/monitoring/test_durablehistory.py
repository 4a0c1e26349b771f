"""History that goes on: what is written of it, what a restart and a kill leave, and what damage costs."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.compiler.clock import EPOCH, Clock
from headrace.compiler.runtime.monitoring.durablehistory import WRITE_SECONDS, DurableHistory
from headrace.compiler.runtime.monitoring.pipelinehistory import History
from headrace.compiler.store.openstore import Store
from tests.compiler.runtime.counting import Counting, rows
from tests.compiler.store.filled import opened
from tests.compiler.store.killed import kill
from tests.virtual import virtual

BEGAN = 1_767_225_600
HOUR = 3600
DAY = 24 * HOUR


class Kept:
    """A history and the store that it is kept in, one process after the other."""

    def __init__(self, folder: Path, **options: int) -> None:
        self.folder, self._options = folder, options
        self.told: list[str] = []
        self.clock = Clock(asyncio.get_running_loop())
        self.history: History
        self.store: Store
        self._durable: DurableHistory

    async def start(self, ahead: float = 0) -> None:
        """Begin where the process before has ended; the clock may be set ``ahead`` by some seconds."""
        began = EPOCH + timedelta(seconds=Clock(asyncio.get_running_loop()).seconds() + ahead)
        self.clock = Clock(asyncio.get_running_loop(), started_at=began)
        self.store = await opened(self.folder, self.told)
        self.history = History(self.clock, **self._options)
        self._durable = DurableHistory(self.clock, self.history, self.store)
        await self._durable.load()

    def begin(self, *ids: str) -> list[Counting]:
        """Have pipelines run."""
        began = [Counting(self.history, id).begin() for id in ids]
        self._durable.begin()
        return began

    async def stop(self) -> None:
        """End the process in order."""
        self.history.sample()
        self.history.close()
        await self._durable.close()
        await self.store.close()

    def kill(self) -> None:
        """End it without a word."""
        self.history.close()
        self._durable._timer.cancel()  # type: ignore[union-attr]
        kill(self.store)

    async def write(self) -> None:
        await self._durable.write()

    def stored(self) -> list[tuple[object, ...]]:
        """Return pipeline, width and start of the rows on the disk, when it is stopped."""
        with closing(sqlite3.connect(self.folder / "store.db")) as database:
            return database.execute("SELECT pipeline, width, start FROM history").fetchall()

    def damage(self, statement: str) -> None:
        """Change what is on the disk, when it is stopped."""
        with closing(sqlite3.connect(self.folder / "store.db")) as database, database:
            database.execute(statement)


@virtual
async def test_it_goes_on_after_a_restart_with_nothing_while_nobody_ran(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("größe")
    for count in range(1, 40):
        one.count(count, 1)
        one.fail()
        await kept.clock.sleep(31)
    before, fine = (rows(kept.history, "größe", each) for each in ("coarse", "fine"))
    await kept.stop()
    await kept.clock.sleep(300)

    await kept.start()
    ended = [row for row in before if any(row[1:])]
    assert rows(kept.history, "größe") == before[: before.index(ended[-1]) + 1]
    [one] = kept.begin("größe")
    one.count(5_000_000_000)
    await kept.clock.sleep(5)
    now = rows(kept.history, "größe")
    assert now[: len(before)] == before
    assert [each[1:] for each in now[len(before) :]] == [(0, 0, 0)] * 4 + [(5_000_000_000, 0, 0)]
    assert [start for start, *_ in now] == [*range(BEGAN, now[-1][0] + 60, 60)]
    fives = rows(kept.history, "größe", "fine")
    assert fives[: len(fine)] == fine
    assert sum(each[1] for each in fives) == sum(each[1] for each in now)
    assert kept.history.past("größe", "fine").failures == []
    await kept.stop()

    await kept.start()
    assert rows(kept.history, "größe") == now
    assert kept.told == []
    await kept.stop()


@virtual
async def test_a_kill_costs_what_was_counted_since_it_was_written(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("p")
    for _ in range(100):
        one.count(1)
        await kept.clock.sleep(1)
    commits = kept.store.commits
    kept.kill()

    await kept.start()
    counted = sum(each[1] for each in rows(kept.history))
    assert 100 - WRITE_SECONDS - 5 <= counted < 100
    assert counted == sum(each[1] for each in rows(kept.history, resolution="fine"))
    assert commits == 0  # of what is kept otherwise
    await kept.stop()


@pytest.mark.long
@virtual
async def test_it_is_the_same_as_one_that_was_never_restarted(tmp_path: Path) -> None:
    """Stops at moments drawn by lot, and counts of many sizes, for longer than history goes back."""
    choice, back = random.Random(3), 2 * HOUR
    kept = Kept(tmp_path, retention_seconds=back)
    whole = History(Clock(asyncio.get_running_loop()), retention_seconds=back)
    ids = [f"p{which}" for which in range(3)]
    await kept.start()
    those, others = kept.begin(*ids), [Counting(whole, id).begin() for id in ids]
    for step in range(100):
        if choice.random() < 0.5:
            which, count = choice.randrange(3), choice.choice((0, 1, 70_000, 2**33))
            those[which].count(count, count // 2)
            others[which].count(count, count // 2)
        await kept.clock.sleep(choice.choice((1, 7, 60, 400, 500)))
        if step % 10 == 9:
            whole.sample()
            await kept.stop()
            await kept.start()
            those = kept.begin(*ids)
    kept.history.sample()
    whole.sample()

    for id in ids:
        assert rows(kept.history, id) == rows(whole, id)
        assert rows(kept.history, id, "fine") == rows(whole, id, "fine")
    whole.close()
    await kept.stop()
    assert kept.told == []


@virtual
async def test_one_that_did_nothing_for_long_began_when_it_did(tmp_path: Path) -> None:
    kept = Kept(tmp_path, retention_seconds=HOUR)
    await kept.start()
    [one] = kept.begin("p")
    await kept.clock.sleep(2.5 * HOUR)
    one.count(1)
    await kept.clock.sleep(2.5)
    before, fine = rows(kept.history), rows(kept.history, resolution="fine")
    await kept.stop()

    await kept.start()
    assert rows(kept.history) == before
    assert rows(kept.history, resolution="fine") == fine
    assert (before[0][0], fine[0][0]) == (BEGAN + 1.5 * HOUR + 60, BEGAN + 2 * HOUR + 5)
    await kept.stop()


@virtual
async def test_what_is_counted_while_time_stands_still_is_written_as_well(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("p")
    for _ in range(2):
        one.count(2)
        kept.history.sample()
        await kept.write()
    kept.kill()

    await kept.start()
    assert rows(kept.history) == [(BEGAN, 4, 0, 0)]
    await kept.stop()


@virtual
async def test_nothing_is_written_of_what_counts_nothing_and_what_is_too_old_goes(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path, retention_seconds=2 * HOUR)
    await kept.start()
    _, one = kept.begin("idle", "p")
    for _ in range(8):
        one.count(1)
        await kept.clock.sleep(HOUR / 2)
    await kept.stop()

    began = int(kept.clock.seconds()) // HOUR * HOUR
    stored = kept.stored()
    assert sorted(start for id, width, start in stored if (id, width) == ("p", 60)) == [
        *range(began - 2 * HOUR, began, HOUR)
    ]
    assert [row for row in stored if row[1] == 5 and row[2] <= began - HOUR - 300] == []
    assert [row for row in stored if row[0] == "idle"] == []


@pytest.mark.parametrize("ahead", [-DAY, -600, -2, HOUR, 30 * DAY])
@virtual
async def test_a_clock_that_is_set_costs_no_more_than_what_is_of_another_time(
    tmp_path: Path, ahead: int, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("p")
    await kept.clock.sleep(900)
    one.count(7)
    await kept.clock.sleep(2.5)
    await kept.stop()

    await kept.start(ahead)
    [one] = kept.begin("p")
    one.count(1)
    await kept.clock.sleep(60)
    now = rows(kept.history)
    assert sum(each[1] for each in now) == (8 if ahead in (-2, HOUR) else 1)
    assert now[-1][0] <= kept.clock.seconds()
    assert len(now) <= 1440
    assert ("which the clock shows" in caplog.text) == (ahead in (-DAY, -600))
    await kept.stop()

    await kept.start()  # it is set right again
    kept.begin("p")
    if ahead not in (-600, 30 * DAY):  # of the hour that was under way all is written over
        assert sum(each[1] for each in rows(kept.history)) >= 7
    await kept.stop()
    assert kept.told == []


@virtual
async def test_a_damaged_row_is_told_and_left_out(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    a, b = kept.begin("a", "b")
    a.count(1)
    b.count(2)
    await kept.stop()
    kept.damage("UPDATE history SET counts = '[0,99,0,0]' WHERE pipeline = 'a' AND width = 60")

    await kept.start()
    assert sum(each[1] for each in rows(kept.history, "a")) == 0
    assert sum(each[1] for each in rows(kept.history, "a", "fine")) == 1
    assert sum(each[1] for each in rows(kept.history, "b")) == 2
    assert kept.told == ["1 rows of history are damaged"]
    assert kept.store.condition.damaged == 1
    kept.begin("a")
    await kept.stop()


@virtual
async def test_history_outlives_a_database_that_is_made_anew(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    for one in kept.begin("a", "b"):
        one.count(3)
    await kept.stop()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        [page] = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'entries'"
        ).fetchone()
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))

    await kept.start()
    assert "of its rows 4 could be read" in kept.told[0]
    assert [sum(each[1] for each in rows(kept.history, id)) for id in ("a", "b")] == [3, 3]
    await kept.stop()


@virtual
async def test_where_it_cannot_be_read_it_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("p")
    one.count(1)
    await kept.stop()

    await DurableHistory(kept.clock, again := History(kept.clock), kept.store).load()

    assert rows(again) == []
    assert "history cannot be read, and begins anew: the store is closed" in caplog.text


@virtual
async def test_what_made_room_for_others_is_deleted(tmp_path: Path) -> None:
    kept = Kept(tmp_path, most_ended_bytes=10_000)
    await kept.start()
    for number in range(20):
        [one] = kept.begin(f"p{number}")
        one.count(1)
        one.end()
    await kept.write()
    await kept.clock.sleep(5)
    left = {*kept.history.records}
    assert 1 < len(left) < 10
    await kept.stop()

    assert {id for id, *_ in kept.stored()} == left


@virtual
async def test_where_nothing_can_be_written_it_goes_on_in_memory_and_is_written_later(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path)
    await kept.start()
    [one] = kept.begin("p")
    kept.store.database._run.execute("PRAGMA query_only = ON")
    one.count(1)
    await kept.clock.sleep(WRITE_SECONDS + 0.5)
    assert sum(each[1] for each in rows(kept.history)) == 1
    assert kept.store.condition.failures == 1

    one.count(2)
    await kept.clock.sleep(2 * WRITE_SECONDS)  # the store was opened anew
    kept.kill()
    await kept.start()
    assert sum(each[1] for each in rows(kept.history)) == 3
    await kept.stop()
