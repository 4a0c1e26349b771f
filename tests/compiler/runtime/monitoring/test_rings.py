"""Buckets in a row: wide enough, long enough, and no memory for what did not happen."""

from __future__ import annotations

from sys import getsizeof

import pytest

from headrace.compiler.runtime.monitoring.pipelinerecord import Ring

MINUTE = 60


def rows(ring, at):
    """Return what a ring tells at a moment, one tuple per bucket."""
    told = ring.until(at)
    counts = list(told.counts)
    starts = range(told.start, told.start + len(told) * told.width, told.width)
    return list(zip(starts, counts[::3], counts[1::3], counts[2::3], strict=True))


def test_buckets_begin_at_multiples_of_their_width_and_empty_ones_are_told():
    ring = Ring(MINUTE, 10, 125.0)
    ring.add(125.0, (1, 2, 3))
    ring.add(179.9, (10, 0, 0))
    ring.add(300.0, (0, 0, 7))

    assert rows(ring, 370.0) == [
        (120, 11, 2, 3),
        (180, 0, 0, 0),
        (240, 0, 0, 0),
        (300, 0, 0, 7),
        (360, 0, 0, 0),
    ]


def test_a_ring_that_nothing_happened_in_tells_zeros_from_its_begin_to_now():
    ring = Ring(MINUTE, 3, 60.0)

    assert rows(ring, 60.0) == [(60, 0, 0, 0)]
    assert rows(ring, 10_000.0) == [(9840, 0, 0, 0), (9900, 0, 0, 0), (9960, 0, 0, 0)]


def test_the_oldest_buckets_go_and_the_others_keep_their_counts():
    ring = Ring(5, 4, 0.0)
    for number in range(10):
        ring.add(number * 5.0, (number, 0, 0))

    assert rows(ring, 45.0) == [(30, 6, 0, 0), (35, 7, 0, 0), (40, 8, 0, 0), (45, 9, 0, 0)]
    assert rows(ring, 55.0) == [(40, 8, 0, 0), (45, 9, 0, 0), (50, 0, 0, 0), (55, 0, 0, 0)]


def test_after_a_gap_longer_than_the_ring_only_the_new_bucket_is_full():
    ring = Ring(MINUTE, 3, 0.0)
    ring.add(0.0, (1, 1, 1))

    ring.add(1e12, (2, 0, 0))

    assert [counts for _, *counts in rows(ring, 1e12)] == [[0, 0, 0], [0, 0, 0], [2, 0, 0]]
    assert ring.bytes == 3 * 3 * 4


def test_a_count_beyond_32_bits_is_exact_and_so_are_those_beside_it():
    ring = Ring(MINUTE, 3, 0.0)
    ring.add(0.0, (7, 8, 9))
    ring.add(60.0, (2**32 - 1, 1, 2**40))
    ring.add(60.0, (1, 0, 1))

    assert rows(ring, 120.0) == [
        (0, 7, 8, 9),
        (60, 2**32, 1, 2**40 + 1),
        (120, 0, 0, 0),
    ]


def test_what_is_told_is_a_copy():
    ring = Ring(MINUTE, 3, 0.0)
    ring.add(0.0, (1, 0, 0))
    told = ring.until(0.0)

    ring.add(0.0, (1, 0, 0))

    assert list(told.counts) == [1, 0, 0]


def test_a_ring_takes_memory_as_things_happen_and_twelve_bytes_a_bucket_when_it_is_full():
    ring = Ring(MINUTE, 1440, 0.0)
    assert ring.bytes == 0

    for minute in range(5000):
        ring.add(minute * 60.0, (1, 1, 0))

    assert ring.bytes == 1440 * 12
    # What the array keeps for itself beside that.
    assert getsizeof(ring._counts) <= 1440 * 12 * 1.15


@pytest.mark.parametrize("size", [1, 2, 1440])
def test_as_many_buckets_are_told_as_the_ring_has(size):
    ring = Ring(MINUTE, size, 0.0)
    for minute in range(2000):
        ring.add(minute * 60.0, (1, 0, 0))

    told = rows(ring, 1999 * 60.0)

    assert [counts for _, *counts in told] == [[1, 0, 0]] * size
    assert told[-1][0] == 1999 * 60
