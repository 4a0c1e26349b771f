"""What a durable bucket has written: all that is on the disk or should be, and nothing else for ever."""

from __future__ import annotations

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
