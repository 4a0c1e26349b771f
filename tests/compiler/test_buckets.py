"""Buckets: bounded, expiring, merged at once, watched."""

from __future__ import annotations

import gc
from itertools import count

import pytest

from headrace.compiler.buckets import MOMENT, SPARE, WHOLE, Bounds, Bucket, Buckets
from tests.compiler.bucketed import bucket, clock, write
from tests.virtual import virtual


def keys(it: Bucket) -> list[str]:
    """Return what is held, newest first."""
    return [key for key, _, _ in it.newest(len(it))]


@virtual
async def test_what_is_written_is_read():
    it = bucket()

    it.merge({"m1": {"mode": "auto", "speed": 3}, WHOLE: {"shift": None}})

    assert it.get("m1") == {"mode": "auto", "speed": 3}
    assert it.get("") == {"shift": None}
    assert it.get("m2") is None
    assert len(it) == 2


@virtual
async def test_names_merge_and_others_stay():
    it = bucket()
    it.merge({"m1": {"mode": "auto", "speed": 3}})

    it.merge({"m1": {"speed": 4, "tool": "drill"}})

    assert it.get("m1") == {"mode": "auto", "speed": 4, "tool": "drill"}


@virtual
async def test_what_a_writer_hands_in_stays_the_writers():
    it, written = bucket(), {"mode": "auto"}
    it.merge({"m1": written, "m2": written})

    written["mode"] = "off"
    it.merge({"m1": {"speed": 3}})

    assert it.get("m1") == {"mode": "auto", "speed": 3}
    assert it.get("m2") == {"mode": "auto"}


@virtual
async def test_a_new_key_takes_the_place_of_the_one_written_longest_ago():
    it = bucket(max_keys=3)
    write(it, "a", "b", "c")
    it.get("a")  # reading never refreshes
    write(it, "b", "d", "e")

    assert [*it.entries] == ["b", "d", "e"]


@virtual
async def test_a_merge_of_more_keys_than_fit_leaves_the_last_of_them():
    it = bucket(max_keys=2)

    it.merge({key: {"n": 1} for key in "abcd"})

    assert [*it.entries] == ["c", "d"]


@virtual
async def test_a_key_expires_to_the_digit_and_a_read_does_not_keep_it():
    it, seen = bucket(idle=3, by=clock()), []
    await clock().sleep(5.2)
    write(it, "a")

    for pause in (1.5, 1.499999, 0.000001):
        await clock().sleep(pause)
        seen.append(it.get("a") is not None)

    assert seen == [True, True, False]


@virtual
async def test_a_write_starts_the_time_again():
    it = bucket(idle=3)
    write(it, "a", "b")
    await clock().sleep(2)
    write(it, "a")
    await clock().sleep(2)

    assert (it.get("a"), it.get("b")) == ({"mode": "a"}, None)
    assert len(it) == 1


@virtual
async def test_without_an_idle_time_nothing_expires():
    it = bucket()
    write(it, "a")

    await clock().sleep(1e9)

    assert len(it) == 1
    assert it.expire(5)


@virtual
async def test_what_was_remembered_before_a_key_expired_does_not_come_back_with_it():
    it = bucket(max_keys=1000, idle=3)
    it.merge({str(n): {"old": n} for n in range(SPARE + 10)})
    await clock().sleep(3)
    last = str(SPARE + 9)  # one that no merge has let go of so far

    it.merge({last: {"new": 1}})

    assert it.get(last) == {"new": 1}


@virtual
async def test_a_merge_lets_go_of_some_of_what_has_expired_and_not_of_all_at_once():
    it = bucket(max_keys=10_000, idle=3)
    it.merge({str(n): {"n": n} for n in range(1000)})
    await clock().sleep(3)

    left = []
    for _ in range(3):
        it.merge({"new": {"n": 1}, "newer": {"n": 1}})
        left.append(len(it.entries))

    assert left == [1000 - (SPARE + 2) * merges + 2 for merges in (1, 2, 3)]
    assert len(it) == 2


@virtual
async def test_what_has_expired_counts_for_nothing_in_a_full_bucket():
    it = bucket(max_keys=500, idle=3)
    it.merge({str(n): {"n": n} for n in range(499)})
    await clock().sleep(3)
    write(it, "kept")

    for n in range(499):
        it.merge({f"new {n}": {"n": n}})

    assert len(it) == 500
    assert it.get("kept") is not None


@virtual
async def test_a_bucket_that_is_full_says_so_once_and_counts_the_keys_that_go(caplog):
    it = bucket(max_keys=2)
    it.merge({"a": {"n": 1}, "b": {"n": 1}})
    it.merge({"a": {"n": 2}, "b": {"n": 2}})
    assert it.evictions == 0
    assert caplog.messages == []

    it.merge({"c": {"n": 1}, "d": {"n": 1}})
    it.writer({"n": "m['n']"})({"e": {"n": 1}})

    assert it.evictions == 3
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "bucket 'machines' is full (max_keys is 2): from now on each new key takes the place of "
            "the one that was written longest ago",
        )
    ]


@virtual
async def test_a_key_that_had_expired_is_no_eviction(caplog):
    it = bucket(max_keys=500, idle=3)
    it.merge({str(n): {"n": n} for n in range(500)})
    await clock().sleep(3)

    it.merge({f"new {n}": {"n": n} for n in range(200)})

    assert it.evictions == 0
    assert caplog.messages == []


@virtual
async def test_a_key_that_expires_while_others_are_written_is_no_eviction(caplog):
    busy, seconds = clock(), count(1)
    busy.monotonic = lambda: float(next(seconds))  # a second goes by with every look
    it = bucket(max_keys=2, idle=4, by=busy)
    write(it, "a", "b")

    it.merge({"c": {"n": 1}})

    assert [*it.entries] == ["b", "c"]
    assert it.evictions == 0
    assert caplog.messages == []


@virtual
async def test_a_bucket_whose_bounds_change_counts_anew():
    it = Buckets(clock())
    it.declare({"same": Bounds(1), "other": Bounds(1)})
    for each in it:
        write(each, "a")
        write(each, "b")

    it.declare({"same": Bounds(1), "other": Bounds(2)})

    assert {each.name: each.evictions for each in it} == {"same": 1, "other": 0}


@virtual
async def test_expired_keys_are_let_go_of_in_slices():
    it = bucket(max_keys=100, idle=3)
    it.merge({str(n): {"n": n} for n in range(25)})
    await clock().sleep(3)

    assert [(it.expire(10), len(it.entries)) for _ in range(3)] == [
        (False, 15),
        (False, 5),
        (True, 0),
    ]


@virtual
async def test_the_newest_come_first_and_ties_by_key():
    it, by = bucket(max_keys=100), clock()
    it.merge({"b": {"n": 1}, "a": {"n": 1}})
    await by.sleep(1)
    it.merge({key: {"n": 2} for key in "dce"})
    it.merge({"f": {"n": 2}})
    await by.sleep(1)
    write(it, "b")

    assert keys(it) == ["b", "c", "d", "e", "f", "a"]
    assert [key for key, _, _ in it.newest(3)] == ["b", "c", "d"]
    assert [at for _, _, at in it.newest(10)] == [2, 1, 1, 1, 1, 0]


@virtual
async def test_the_newest_are_copies():
    it = bucket()
    write(it, "a")
    [(_, values, _)] = it.newest(1)

    it.merge({"a": {"mode": "off"}})

    assert values == {"mode": "a"}


async def test_a_large_merge_takes_several_moments_so_that_ties_stay_few():
    it = bucket(max_keys=10 * MOMENT)

    it.merge({str(n): {"n": n} for n in range(5 * MOMENT)})

    times = [entry.at for entry in it.entries.values()]
    assert times == sorted(times)
    assert len(set(times)) == 5
    assert len(it) == 5 * MOMENT


@virtual
async def test_an_entry_is_nothing_for_the_garbage_collector_to_look_at():
    it = bucket()
    write(it, "a")

    assert not gc.is_tracked(it.entries["a"])


@virtual
async def test_buckets_come_in_the_order_of_their_names():
    it = Buckets(clock())
    it.declare({"b": Bounds(), "": Bounds(1), "a": Bounds()})

    assert it.names() == [each.name for each in it] == ["", "a", "b"]
    assert it.get("a") is [*it][1]
    assert it.get("c") is None


@virtual
async def test_a_declaration_that_stays_the_same_keeps_what_the_bucket_holds():
    it = Buckets(clock())
    it.declare({"same": Bounds(5, 6), "other": Bounds(5, 6), "gone": Bounds()})
    before = {each.name: each for each in it}
    for each in it:
        write(each, "a")

    it.declare({"same": Bounds(5, 6), "other": Bounds(5, None), "new": Bounds()})

    assert {each.name: len(each) for each in it} == {"new": 0, "other": 0, "same": 1}
    assert it.get("same") is before["same"]
    assert it.get("gone") is None


@virtual
async def test_a_declaration_can_be_taken_back_with_what_the_buckets_held():
    it = Buckets(clock())
    it.declare({"same": Bounds(5), "gone": Bounds()})
    for each in it:
        write(each, "a")

    undo = it.declare({"same": Bounds(6), "new": Bounds()})
    undo()

    assert {each.name: len(each) for each in it} == {"gone": 1, "same": 1}


@pytest.mark.parametrize("idle", [10**9, 2**64, 10**400])
@virtual
async def test_the_longest_idle_time_is_never_over(idle):
    it = bucket(idle=idle)
    write(it, "a")

    await clock().sleep(1e6)

    assert len(it) == 1
