"""The table of distinct failures: 64, the one seen longest ago goes, and the old ones go by themselves."""

from __future__ import annotations

import asyncio

from msgspec import UNSET

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.monitoring.signatures import MOST_SIGNATURES, Signatures
from tests.virtual import virtual

BEGAN = 1767225600000


def table(seconds=60):
    """Return a table and the clock it reads."""
    clock = Clock(asyncio.get_running_loop())
    return Signatures(clock, seconds), clock


def told(signatures):
    return [(each.message, each.count) for each in signatures.latest()]


@virtual
async def test_a_failure_is_known_by_stage_component_and_message():
    signatures, clock = table()
    places = [("output", 0, "full"), ("output", 1, "full"), ("input", None, "full")]
    for place in [*places, *places, places[0]]:
        signatures.count(*place)
        await clock.sleep(1)

    assert [
        (each.stage, each.component, each.message, each.count, each.first_seen, each.last_seen)
        for each in signatures.latest()
    ] == [
        ("output", 0, "full", 3, BEGAN, BEGAN + 6000),
        ("input", None, "full", 2, BEGAN + 2000, BEGAN + 5000),
        ("output", 1, "full", 2, BEGAN + 1000, BEGAN + 4000),
    ]


@virtual
async def test_of_those_seen_at_once_the_messages_decide_the_order():
    signatures, _ = table()
    for message in "bca":
        signatures.count("output", 0, message)

    assert told(signatures) == [("a", 1), ("b", 1), ("c", 1)]


@virtual
async def test_the_signature_seen_longest_ago_makes_room_for_a_65th():
    signatures, clock = table()
    for number in range(MOST_SIGNATURES):
        signatures.count("transform", 0, f"fault {number}")
    await clock.sleep(1)
    signatures.count("transform", 0, "fault 0")
    signatures.count("transform", 0, "fault 64")

    messages = {message for message, _ in told(signatures)}
    assert len(messages) == MOST_SIGNATURES
    assert "fault 0" in messages
    assert "fault 1" not in messages
    assert signatures.dropped == 1


@virtual
async def test_what_was_not_seen_for_the_retention_leaves_and_was_not_dropped():
    signatures, clock = table(seconds=60)
    signatures.count("output", 0, "old")
    await clock.sleep(30)
    signatures.count("output", 0, "young")
    await clock.sleep(30)
    assert told(signatures) == [("young", 1), ("old", 1)]

    await clock.sleep(0.001)

    assert told(signatures) == [("young", 1)]
    assert signatures.dropped == 0


@virtual
async def test_what_comes_back_after_the_retention_is_counted_from_one():
    signatures, clock = table(seconds=60)
    signatures.count("output", 0, "full")
    await clock.sleep(61)

    signatures.count("output", 0, "full")

    [failure] = signatures.latest()
    assert (failure.count, failure.first_seen) == (1, BEGAN + 61_000)


@virtual
async def test_what_has_expired_makes_no_room():
    signatures, clock = table(seconds=60)
    for number in range(MOST_SIGNATURES):
        signatures.count("output", 0, f"old {number}")
    await clock.sleep(61)

    signatures.count("output", 0, "young")

    assert told(signatures) == [("young", 1)]
    assert signatures.dropped == 0


@virtual
async def test_with_a_retention_of_nothing_nothing_is_kept():
    signatures, _ = table(seconds=0)

    signatures.count("output", 0, "full")

    assert (told(signatures), signatures.dropped, signatures.size) == ([], 0, 0)


@virtual
async def test_a_table_takes_on_another_as_if_it_had_counted_that_itself():
    signatures, clock = table()
    before = Signatures(clock, 60)
    signatures.count("output", 0, "full")
    await clock.sleep(1)
    before.count("output", 0, "full")
    before.count("output", 1, "refused")
    await clock.sleep(1)
    signatures.count("output", 2, "late")

    signatures.absorb(before)

    assert told(signatures) == [("late", 1), ("full", 2), ("refused", 1)]
    full = signatures.latest()[1]
    assert (full.first_seen, full.last_seen) == (BEGAN, BEGAN + 1000)


@virtual
async def test_what_had_expired_is_not_taken_on():
    signatures, clock = table(seconds=60)
    signatures.count("output", 0, "full")
    await clock.sleep(61)
    other = Signatures(clock, 60)
    other.count("output", 0, "full")

    signatures.absorb(other)

    [failure] = signatures.latest()
    assert (failure.count, failure.first_seen) == (1, BEGAN + 61_000)


@virtual
async def test_two_full_tables_become_one_that_keeps_the_latest_of_both():
    signatures, clock = table()
    other = Signatures(clock, 60)
    for number in range(MOST_SIGNATURES):
        other.count("output", 0, f"other {number}")
        signatures.count("output", 0, f"own {number}")
        await clock.sleep(0.001)
    other.count("output", 0, "one more")

    signatures.absorb(other)

    kept = {message for message, _ in told(signatures)}
    half = range(MOST_SIGNATURES // 2 + 1, MOST_SIGNATURES)
    assert kept >= {"one more", *(f"{whose} {n}" for whose in ("own", "other") for n in half)}
    assert len(kept) == MOST_SIGNATURES
    assert signatures.dropped == 1 + MOST_SIGNATURES


@virtual
async def test_equal_failures_of_two_inputs_are_one_failure_and_each_is_told_by_itself():
    signatures, clock = table()
    for index in (0, 1, 0):
        signatures.count("input", None, "gone", index)
        await clock.sleep(1)

    [both] = signatures.latest()
    assert (both.count, both.first_seen, both.last_seen) == (3, BEGAN, BEGAN + 2000)
    assert both.input_index is UNSET
    assert [(each.input_index, each.count) for each in signatures.by_input()] == [(1, 1), (0, 2)]


@virtual
async def test_the_input_is_told_where_no_other_one_failed_so():
    signatures, _ = table()
    signatures.count("input", None, "gone", 1)
    signatures.count("input", None, "gone", 1)
    signatures.count("output", 0, "full")

    assert [(each.message, each.input_index) for each in signatures.latest()] == [
        ("full", UNSET),
        ("gone", 1),
    ]


@virtual
async def test_equal_failures_of_many_inputs_drop_none():
    signatures, _ = table()
    for index in range(MOST_SIGNATURES + 1):
        signatures.count("input", None, "gone", index)

    assert (told(signatures), signatures.dropped) == ([("gone", MOST_SIGNATURES + 1)], 0)


@virtual
async def test_a_table_takes_on_the_inputs_of_another():
    signatures, clock = table()
    before = Signatures(clock, 60)
    before.count("input", None, "gone", 0)
    before.count("input", None, "gone", 1)
    await clock.sleep(1)
    signatures.count("input", None, "gone", 0)
    await clock.sleep(59.5)

    signatures.absorb(before)

    assert [(each.input_index, each.count) for each in signatures.by_input()] == [(1, 1), (0, 2)]
