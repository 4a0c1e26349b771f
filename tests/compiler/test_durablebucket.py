"""What a durable bucket has written: all that is on the disk or should be, and nothing else for ever."""

from __future__ import annotations

import pytest

from headrace.compiler import dividedentries, durablebucket
from headrace.compiler.buckets import Bounds
from headrace.compiler.durablebucket import MOST_UNTAKEN, DurableBucket, KeyChange
from tests.compiler.remembering import clock_at
from tests.virtual import virtual


def small(max_keys: int = 2) -> DurableBucket:
    return DurableBucket("machines", Bounds(max_keys, is_durable=True), clock_at())


def write(bucket: DurableBucket, *keys: str) -> None:
    bucket.merge({key: {"n": 1} for key in keys})


def taken(bucket: DurableBucket) -> list[KeyChange]:
    """Take all that has changed, as if it were written."""
    found: list[KeyChange] = []
    while some := bucket.take():
        bucket.stored(some)
        found += some
    return found


@virtual
async def test_what_never_was_on_a_disk_that_takes_nothing_is_not_held_for_ever() -> None:
    bucket = small(10)
    waited: list[str] = []
    for number in range(4 * MOST_UNTAKEN):
        write(bucket, str(number))
    bucket.when_stored(lambda: waited.append("stored"))

    found = taken(bucket)

    assert len(found) <= MOST_UNTAKEN + 10
    assert [key for key, _, _, values in found if values is not None] == [*bucket.entries]
    assert waited == ["stored"]
    assert bucket.is_stored


@virtual
async def test_what_may_be_on_the_disk_is_deleted_however_often_it_comes_and_goes() -> None:
    bucket = small()
    write(bucket, "a", "b")
    taken(bucket)
    write(bucket, "c")  # for which a has to go
    write(bucket, "a")  # and comes again
    for number in range(2 * MOST_UNTAKEN):
        write(bucket, f"{number}")

    deleted = {key for key, _, _, values in taken(bucket) if values is None}

    assert {"a", "b"} <= deleted


@virtual
async def test_what_comes_again_as_others_are_left_out_is_written() -> None:
    bucket = small()
    for number in range(MOST_UNTAKEN + 1):  # one more that goes, and those are left out
        write(bucket, f"{number}")

    bucket.writer({"n": "m['n']"})({"0": {"n": 2}, "new": {"n": 2}})  # the last one first

    written = {key for key, _, _, values in taken(bucket) if values is not None}
    assert written == {*bucket.entries} == {"new", "0"}


@virtual
async def test_so_it_is_where_what_deletes_it_could_not_be_written() -> None:
    bucket = small()
    write(bucket, "a", "b")
    taken(bucket)
    write(bucket, "c", "d")
    under_way = bucket.take()
    write(bucket, "a")
    bucket.put_back(under_way)
    for number in range(2 * MOST_UNTAKEN):
        write(bucket, f"{number}")

    deleted = {key for key, _, _, values in taken(bucket) if values is None}

    assert {"a", "b"} <= deleted


@pytest.mark.parametrize("divided", [False, True])
@virtual
async def test_what_is_written_again_comes_in_parts_and_in_the_order_of_the_writes(
    monkeypatch: pytest.MonkeyPatch, divided: bool
) -> None:
    monkeypatch.setattr(dividedentries, "KEYS_OF_A_PART", 3)
    monkeypatch.setattr(durablebucket, "DIVIDED_FROM", 0 if divided else 100)
    bucket = small(10)
    write(bucket, *"abcdefghij")
    taken(bucket)
    write(bucket, "b")
    waited: list[str] = []
    bucket.change_all()
    bucket.when_stored(lambda: waited.append("stored"))
    disk: dict[str, int] = {}
    sizes: list[int] = []

    while some := bucket.take(4):
        assert not waited
        disk |= {key: number for key, number, _, values in some if values is not None}
        for key in (key for key, _, _, values in some if values is None):
            disk.pop(key, None)
        sizes.append(len(some))
        bucket.stored(some)
        if len(sizes) == 1:
            write(bucket, "c", "j")  # one that was written again, and one that was not
        if len(sizes) == 2:
            write(bucket, "new")  # for which the oldest has to go

    assert sorted(disk, key=lambda key: disk[key]) == [*bucket.entries]
    assert [*bucket.entries] == [*"defghi", "b", "c", "j", "new"]
    bucket.stored(bucket.take())
    assert (waited, bucket.is_stored, max(sizes)) == (["stored"], True, 4)


@virtual
async def test_of_a_large_bucket_that_is_written_again_little_is_noted_at_once() -> None:
    bucket = small(100_000)
    for start in range(0, 100_000, 10_000):
        write(bucket, *map(str, range(start, start + 10_000)))
    taken(bucket)

    bucket.change_all()

    assert len(bucket._changed) <= dividedentries.KEYS_OF_A_PART
    assert sorted(key for key, *_ in taken(bucket)) == sorted(bucket.entries)
