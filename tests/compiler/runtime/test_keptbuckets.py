"""Durable buckets and the store: what is there again after a restart, in which order, and how old."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.durablebucket import TOGETHER, DurableBucket, TakenKeys
from headrace.compiler.jsontext import decode_exact, encode
from headrace.compiler.store.database import Database
from headrace.compiler.store.group import MOST_ENTRIES
from headrace.compiler.store.storedrows import Changes, StoredQueue
from tests.compiler.bucketed import write
from tests.compiler.remembering import BEGIN, clock_at, contents, declared, opened, stored
from tests.compiler.store.killed import kill
from tests.promises import promise
from tests.virtual import virtual

DAY = timedelta(days=1)
STILL = (
    "bucket 'machines' is waited for, and what is started with it as well:"
    " the store fails (it cannot be written: disk I/O error)"
)


async def filled(folder: Path, *keys: str) -> None:
    """Leave a store in which these keys were written a second apart, and that was killed then."""
    store = await opened(folder)
    bucket = await declared(store)
    for key in keys:
        write(bucket, key)
        await stored(bucket)
        await clock_at().sleep(1)
    kill(store)


def keys_of(bucket: DurableBucket) -> list[str]:
    return [key for key, _ in contents(bucket)]


@promise("delivery.bucket.restart")
@virtual
async def test_what_was_written_is_there_after_a_kill_in_its_order(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    bucket.merge({"m1": {"mode": "auto", "rpm": 90}, "m2": {"mode": "off"}})
    bucket.merge({"m1": {"rpm": 91}})
    await stored(bucket)
    kill(store)
    store = await opened(tmp_path)

    again = await declared(store)

    assert contents(again) == [("m2", {"mode": "off"}), ("m1", {"mode": "auto", "rpm": 91})]
    assert again.fill() == bucket.fill()
    await store.close()


@virtual
async def test_what_goes_is_gone_on_the_disk_as_well(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    clock = clock_at()
    bucket = await declared(store, clock, max_keys=3, idle=10)
    write(bucket, "m1", "m2", "m3", "m4")  # m1 has to go
    await clock.sleep(5)
    write(bucket, "m3")
    await clock.sleep(6)
    assert len(bucket) == 1  # m2 and m4 have expired
    await stored(bucket)
    kill(store)
    store = await opened(tmp_path)

    assert keys_of(await declared(store)) == ["m3"]
    await store.close()


@virtual
async def test_only_what_is_committed_need_be_there(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    write(bucket, "m1")
    await stored(bucket)
    write(bucket, "m2")
    kill(store)
    store = await opened(tmp_path)

    assert keys_of(await declared(store)) == ["m1"]
    await store.close()


@virtual
async def test_all_that_one_turn_writes_is_one_commit(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    before = store.commits
    for number in range(1_000):
        bucket.merge({f"m{number % 10}": {"n": number}})
    await stored(bucket)

    assert store.commits == before + 1
    assert contents(bucket)[-1] == ("m9", {"n": 999})
    await store.close()


@virtual
async def test_what_is_too_much_for_one_commit_goes_with_several(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store, max_keys=20_000)
    before = store.commits
    bucket.merge({f"m{number}": {"n": number} for number in range(2 * MOST_ENTRIES + 1)})
    await stored(bucket)
    assert store.commits == before + 3
    await store.close()
    store = await opened(tmp_path)

    assert contents(await declared(store, max_keys=20_000)) == contents(bucket)
    await store.close()


@pytest.mark.parametrize("ended", ["killed", "failed once"])
@virtual
async def test_what_is_written_as_much_is_taken_is_on_the_disk_as_it_was_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    take, commit = DurableBucket.take, Database.commit
    sizes: list[int] = []
    fails = [ended == "failed once"]

    def noted(self: DurableBucket, most: int) -> TakenKeys:
        taken = take(self, most)
        sizes.append(len(taken))
        if sizes == [TOGETHER]:
            asyncio.get_running_loop().call_soon(lambda: write(bucket, "m0", "new"))
        return taken

    def failing(self: Database, changes: Changes) -> None:
        if fails[0] and changes.remembered:
            fails[0] = False
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, changes)

    store = await opened(tmp_path)
    bucket = await declared(store, max_keys=20_000)
    before = store.commits
    monkeypatch.setattr(DurableBucket, "take", noted)
    monkeypatch.setattr(Database, "commit", failing)
    bucket.merge({f"m{number}": {"n": number} for number in range(TOGETHER + 10)})
    await stored(bucket)
    await clock_at().sleep(3)
    if ended == "killed":
        assert (sizes, store.commits) == ([TOGETHER, 12], before + 1)
    kill(store)
    store = await opened(tmp_path)

    assert contents(await declared(store, max_keys=20_000)) == contents(bucket)
    await store.close()


@virtual
async def test_a_key_that_is_written_all_the_time_is_stored_in_its_turn() -> None:
    bounds = Bounds(10 * TOGETHER, None, is_durable=True)
    bucket = DurableBucket("machines", bounds, clock_at())
    write(bucket, "hot", *(f"m{number}" for number in range(TOGETHER)))
    done: list[str] = []
    bucket.when_stored(lambda: done.append("all"))
    write(bucket, "hot")

    first = bucket.take()
    write(bucket, "hot", "more")
    bucket.stored(first)
    assert ("hot" in [each[0] for each in first], done) == (True, [])
    bucket.stored(bucket.take())
    assert done == ["all"]


@promise("delivery.bucket.fewer")
@pytest.mark.parametrize("ended", ["killed", "closed"])
@virtual
async def test_fewer_keys_than_stored_are_the_newest_and_it_is_told(
    tmp_path: Path, ended: str
) -> None:
    await filled(tmp_path, *"abcde")
    told: list[str] = []
    store = await opened(tmp_path)

    bucket = await declared(store, max_keys=2, told=told)

    assert keys_of(bucket) == ["d", "e"]
    assert told == [
        "bucket 'machines' has 5 keys in the store and may hold 2: 3 that were written longest ago are gone"
    ]
    await stored(bucket)
    kill(store) if ended == "killed" else await store.close()
    store = await opened(tmp_path)
    assert keys_of(await declared(store)) == ["d", "e"]
    await store.close()


@promise("delivery.bucket.restart")
@virtual
async def test_a_clock_that_was_set_forth_makes_all_of_it_older(tmp_path: Path) -> None:
    await filled(tmp_path, "a", "b")
    clock = clock_at(BEGIN + DAY + timedelta(seconds=2))
    store = await opened(tmp_path, clock)

    bucket = await declared(store, clock, idle=86_402)

    ages = [clock.monotonic() - entry.at for entry in bucket.entries.values()]
    assert (keys_of(bucket), ages) == (["b"], [pytest.approx(86_401)])
    await store.close()


@promise("delivery.bucket.restart")
@virtual
async def test_a_clock_that_was_set_back_has_nothing_come_from_the_future(tmp_path: Path) -> None:
    await filled(tmp_path, "a", "b")
    clock = clock_at(BEGIN - DAY)
    store = await opened(tmp_path, clock)

    bucket = await declared(store, clock, idle=10)

    assert keys_of(bucket) == ["a", "b"]
    write(bucket, "c")
    assert keys_of(bucket) == ["a", "b", "c"]
    await clock.sleep(9)
    write(bucket, "b")
    await clock.sleep(1)
    assert keys_of(bucket) == ["b"]
    await store.close()


@virtual
async def test_the_order_is_that_of_writing_whatever_the_clock_said(tmp_path: Path) -> None:
    for back, key in enumerate("abc"):
        clock = clock_at(BEGIN - back * DAY)
        store = await opened(tmp_path, clock)
        bucket = await declared(store, clock)
        write(bucket, key)
        await store.close()
    clock = clock_at(BEGIN)
    store = await opened(tmp_path, clock)

    bucket = await declared(store, clock, max_keys=3, idle=86_400 * 10)

    assert keys_of(bucket) == ["a", "b", "c"]
    assert [entry.at for entry in bucket.entries.values()] == sorted(
        entry.at for entry in bucket.entries.values()
    )
    write(bucket, "d")
    assert keys_of(bucket) == ["b", "c", "d"]
    await store.close()


@virtual
async def test_any_key_and_any_value_come_back_as_they_were(tmp_path: Path) -> None:
    values = {
        "text": 'ü\0"\\\n',
        "number": 12345678901234567890,
        "none": None,
        "deep": [{"a": [1.5]}],
    }
    keys = ["", "\0", "a\0b", "ü", "\ud800", 'a"b\\c', "a", "b" * 5_000, "a\0c"]
    store = await opened(tmp_path)
    bucket = await declared(store)
    for key in keys:
        bucket.merge({key: values})
    await stored(bucket)
    bucket.bounds = Bounds(len(keys), None, is_durable=True)
    write(bucket, "one more")  # the first has to go
    await stored(bucket)
    kill(store)
    store = await opened(tmp_path)

    again = contents(await declared(store))

    assert again == [*((key, values) for key in keys[1:]), ("one more", {"mode": "one more"})]
    await store.close()


@virtual
async def test_an_unusual_key_that_goes_is_gone_on_the_disk(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store, max_keys=2)
    write(bucket, "a\0b", "a", "a\0c", "b")
    await stored(bucket)
    kill(store)
    store = await opened(tmp_path)

    assert keys_of(await declared(store)) == ["a\0c", "b"]
    await store.close()


@virtual
async def test_digits_are_kept(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    bucket.merge({"m1": decode_exact(b'{"weight":1.10,"ratio":0.1234567890123456789}')})
    await store.close()
    store = await opened(tmp_path)

    again = await declared(store)

    assert encode(again.get("m1")) == b'{"weight":1.10,"ratio":0.1234567890123456789}'
    await store.close()


@virtual
async def test_what_is_no_json_is_not_kept_and_told(tmp_path: Path) -> None:
    told: list[str] = []
    store = await opened(tmp_path)
    bucket = await declared(store, told=told)
    bucket.merge({"m1": {"mode": "auto"}})
    await stored(bucket)
    bucket.merge({"m1": {"mode": "\ud800"}, "m2": {"mode": "off"}})
    await store.close()
    store = await opened(tmp_path)

    assert keys_of(await declared(store)) == ["m2"]
    assert [each[:50] for each in told] == ["bucket 'machines': key 'm1' is not kept, as it is "]
    await store.close()


@virtual
async def test_what_is_damaged_is_set_aside_and_told(tmp_path: Path) -> None:
    await filled(tmp_path, "a", "b", "c")
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE remembered SET value = replace(value, 'b', 'x') WHERE key = 'b'")
    told: list[str] = []
    store = await opened(tmp_path, told=told)

    assert keys_of(await declared(store)) == ["a", "c"]
    assert (store.condition.damaged, told) == (
        1,
        ["1 keys of bucket 'machines' are damaged: they are set aside"],
    )
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        assert database.execute("SELECT first, why FROM aside").fetchall() == [("b", "damaged")]
    store = await opened(tmp_path, told=told)
    assert (keys_of(await declared(store)), store.condition.damaged) == (["a", "c"], 0)
    await store.close()


@virtual
async def test_what_a_damaged_file_gives_is_never_wrong(tmp_path: Path) -> None:
    store = await opened(tmp_path / "whole")
    bucket = await declared(store)
    right = {f"m{number}": {"n": number, "pad": "x" * 200} for number in range(300)}
    bucket.merge(right)
    await store.close()
    whole = (tmp_path / "whole" / "store.db").read_bytes()
    chance = random.Random(0)
    lost = 0
    for trial in range(15):
        flipped = bytearray(whole)
        flipped[chance.randrange(4_096, len(whole))] ^= 1 << chance.randrange(8)
        folder = tmp_path / f"{trial}"
        folder.mkdir()
        (folder / "store.db").write_bytes(flipped)
        store = await opened(folder)
        found = dict(contents(await declared(store)))
        assert found.items() <= right.items()
        lost += len(found) < len(right)
        assert len(found) == len(right) or store.condition.damaged or [*folder.glob("*.damaged-*")]
        await store.close()
    assert lost > 3


@promise("delivery.bucket.failing")
@virtual
async def test_where_the_disk_fails_all_of_it_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, fails = Database.commit, [True]

    def failing(self: Database, changes: Changes) -> None:
        if fails[0] and changes.remembered:
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, changes)

    clock = clock_at()
    store = await opened(tmp_path, clock)
    bucket = await declared(store, clock)
    monkeypatch.setattr(Database, "commit", failing)
    done: list[str] = []
    write(bucket, "a", "b")
    bucket.when_stored(lambda: done.append("a and b"))
    await clock.sleep(2.5)
    write(bucket, "a", "c")
    bucket.when_stored(lambda: done.append("c"))
    await clock.sleep(2.5)
    assert done == []
    assert keys_of(bucket) == ["b", "a", "c"]
    fails[0] = False
    await clock.sleep(1.5)
    assert done == ["a and b", "c"]
    kill(store)
    store = await opened(tmp_path)

    assert keys_of(await declared(store)) == ["b", "a", "c"]
    await store.close()


@virtual
async def test_a_database_that_is_made_anew_gets_all_of_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clock_at()
    store = await opened(tmp_path, clock)
    bucket = await declared(store, clock)
    write(bucket, *"abc")
    await stored(bucket)
    commit, fails = Database.commit, [True]

    def damaged(self: Database, changes: Changes) -> None:
        if fails[0] and changes.remembered:
            fails[0] = False
            self._run.execute("DELETE FROM remembered")
            cause = sqlite3.DatabaseError("database disk image is malformed")
            cause.sqlite_errorname = "SQLITE_CORRUPT"
            raise cause
        commit(self, changes)

    monkeypatch.setattr(Database, "commit", damaged)
    write(bucket, "d")
    await stored(bucket)
    await clock.sleep(3)
    kill(store)
    store = await opened(tmp_path)

    assert sorted(keys_of(await declared(store))) == ["a", "b", "c", "d"]
    await store.close()


@pytest.mark.parametrize(("fails", "said"), [(4, []), (7, [STILL])])
@virtual
async def test_what_is_waited_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: float, said: list[str]
) -> None:
    await filled(tmp_path, "a")
    clock = clock_at()
    store = await opened(tmp_path, clock)
    queue, until = Database.queue, clock.monotonic() + fails

    def failing(self: Database, *key: str) -> StoredQueue:
        if clock.monotonic() < until:
            raise sqlite3.OperationalError("disk I/O error")
        return queue(self, *key)

    monkeypatch.setattr(Database, "queue", failing)
    told: list[str] = []

    bucket = await declared(store, clock, told=told)
    await clock.sleep(10)

    assert (keys_of(bucket), told) == (["a"], said)
    await store.close()
