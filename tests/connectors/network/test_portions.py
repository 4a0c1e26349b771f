"""Batches cut into what is published at once."""

from __future__ import annotations

from headrace.connectors.network.portions import PORTION_BYTES, PORTION_MESSAGES, portions


def test_a_batch_is_cut_where_it_is_long_or_large() -> None:
    small, large = b"1", b"x" * (PORTION_BYTES - 1)
    bodies = [small] * (PORTION_MESSAGES + 1) + [large, small, large, large + large, small]

    cut = [*portions(bodies)]

    assert [each for portion in cut for each in portion] == bodies
    assert [len(portion) for portion in cut] == [PORTION_MESSAGES, 2, 2, 1, 1]


def test_another_most_is_kept_as_well() -> None:
    bodies = [b"x" * 40, b"x" * 70, b"x" * 20, b"x" * 10]

    assert [len(portion) for portion in portions(bodies, 100)] == [1, 3]
