"""How far partitions have come: only what is finished is committed, whatever finishes first."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.kafka.offsets import Offsets
from tests.promises import promise


@dataclass(frozen=True)
class At:
    """Where a record was."""

    partition: int
    offset: int


def at(*offsets: int, partition: int = 0) -> list[At]:
    return [At(partition, offset) for offset in offsets]


def handed_out(*offsets: int, start: int = 0, end: int | None = None) -> Offsets:
    """Return what knows of these records of partition 0."""
    it = Offsets()
    it.assign({0: start})
    it.hand_out(0, at(*offsets), start, offsets[-1] + 1 if end is None else end)
    return it


@promise("delivery.ack.order")
def test_a_position_stays_before_the_first_record_that_is_not_finished():
    it = handed_out(0, 1, 2, 3)

    it.finish(at(2, 3))

    assert it.due() == {0: 0}
    it.finish(at(0))
    assert it.due() == {0: 1}
    it.finish(at(1))
    assert it.due() == {0: 4}


def test_the_position_where_reading_began_is_committed_before_anything_is_read():
    it = Offsets()

    it.assign({0: 17})

    assert it.due() == {0: 17}
    it.commit({0: 17})
    assert it.due() == {}


def test_what_was_committed_before_somebody_finished_more_is_not_all():
    it = handed_out(0, 1)
    it.finish(at(0))
    due = it.due()

    it.finish(at(1))
    it.commit(due)

    assert it.due() == {0: 2}


def test_offsets_without_a_message_are_covered():
    it = handed_out(3, 4, 7, start=1, end=10)

    it.finish(at(3, 4, 7))

    assert it.due() == {0: 10}


def test_a_chunk_without_any_message_is_covered():
    it = Offsets()
    it.assign({0: 5})

    it.hand_out(0, [], 5, 9)

    assert it.due() == {0: 9}
    assert it.is_settled


def test_a_batch_may_hold_records_of_several_partitions():
    it = Offsets()
    it.assign({0: 0, 1: 10})
    it.hand_out(0, at(0, 1), 0, 2)
    it.hand_out(1, at(10, partition=1), 10, 11)

    it.finish([*at(1), *at(10, partition=1)])

    assert it.due() == {0: 0, 1: 11}


def test_what_arrives_before_its_partition_was_assigned_begins_it():
    it = Offsets()
    it.hand_out(0, at(5, 6), 5, 7)

    it.assign({0: 7, 1: 0})

    assert it.due() == {0: 5, 1: 0}


def test_a_partition_that_has_lost_its_end_begins_anew_where_that_is():
    it = handed_out(0, 1, 2, 3)
    it.finish(at(0, 1, 2, 3))

    it.hand_out(0, at(2, 3), 2, 4)

    assert it.due() == {0: 2}


def test_what_is_finished_after_its_partition_was_revoked_is_not_committed():
    it = handed_out(0, 1)
    it.revoke()

    it.finish(at(0, 1))

    assert it.due() == {}


def test_what_is_finished_twice_says_nothing_new():
    it = handed_out(0, 1, 2)
    it.finish(at(0, 1))

    it.finish(at(0, 1))

    assert it.due() == {0: 2}


async def test_everything_has_settled_when_the_last_batch_is_finished():
    it = handed_out(0, 1)
    settling = asyncio.ensure_future(it.settle())
    it.finish(at(1))
    await asyncio.sleep(0)
    assert not settling.done()

    it.finish(at(0))

    await settling


async def test_nobody_waits_for_what_was_revoked():
    it = handed_out(0)
    settling = asyncio.ensure_future(it.settle())
    await asyncio.sleep(0)

    it.revoke()

    await settling


@st.composite
def journeys(draw):
    """Give offsets in chunks, and the batches made of them in the order in which they finish."""
    offsets = sorted(draw(st.sets(st.integers(0, 60), min_size=1)))
    cuts = sorted(draw(st.sets(st.integers(1, len(offsets)))) | {len(offsets)})
    chunks = [offsets[a:b] for a, b in zip([0, *cuts], cuts, strict=False) if offsets[a:b]]
    most = draw(st.integers(1, 7))
    batches = [chunk[i : i + most] for chunk in chunks for i in range(0, len(chunk), most)]
    return chunks, draw(st.permutations(batches))


@given(journeys())
def test_after_each_batch_the_position_is_the_first_unfinished_record(journey):
    chunks, batches = journey
    end, handed = 0, []
    it = Offsets()
    it.assign({0: 0})
    for chunk in chunks:
        it.hand_out(0, at(*chunk), end, chunk[-1] + 1)
        end, handed = chunk[-1] + 1, handed + chunk

    finished: set[int] = set()
    for batch in batches:
        it.finish(at(*batch))
        finished |= set(batch)

        unfinished = [offset for offset in handed if offset not in finished]
        done = it.due()[0]
        # Nothing unfinished is committed, and nothing finished before it is left out.
        assert done <= min(unfinished, default=end)
        assert not [offset for offset in finished if done <= offset < min(unfinished, default=end)]
    assert it.due() == {0: end}
    assert it.is_settled


@pytest.mark.parametrize("most", [1, 3, 100])
def test_nothing_is_kept_of_what_is_finished(most: int):
    it = Offsets()
    it.assign({0: 0})
    offsets = [offset for offset in range(3000) if offset % 7]
    it.hand_out(0, at(*offsets), 0, 3000)

    for start in range(0, len(offsets), most):
        it.finish(at(*offsets[start : start + most]))

    [line] = it._lines.values()
    assert line._finished == {}
