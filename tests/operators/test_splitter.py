"""The `splitter` transform."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.splitter import Splitter
from tests.covered import Covered
from tests.doubles import StubContext, refusals


@pytest.mark.parametrize(
    ("batch", "chunks"),
    [
        ([1, 2, 3, 4], [[1, 2, 3]]),
        ([1, 2, 3], [[1, 2, 3]]),
        ([1, 2, 3, 4, 5, 6, 7], [[1, 2, 3], [4, 5, 6]]),
        ([1, 2], []),
        ([], []),
    ],
)
def test_messages_left_over_after_the_last_whole_chunk_are_dropped(batch, chunks):
    split = Splitter(out_size=3).step(StubContext())

    assert split(batch) == chunks


def test_the_batch_it_is_handed_stays_as_it_was():
    batch = [1, 2, 3, 4]

    [chunk] = Splitter(out_size=4).chunks(batch)
    chunk.append(5)

    assert batch == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "this key is required"),
        ({"out_size": 0}, "expected an integer of at least 1, found 0"),
        ({"out_size": "3"}, 'expected an integer of at least 1, found "3"'),
    ],
)
def test_a_size_of_nothing_is_refused(document, message):
    assert refusals(Splitter, document) == [f"out_size: {message}"]


def test_it_looks_at_no_field():
    assert Splitter(out_size=3).field_use() == FieldUse.of()


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        "{type: splitter, out_size: 2}",
        "a: {1s: [{}, {}, {}]}",
        (
            "no batch ever filled 'out_size'",
            "no message was ever left over",
        ),
    ),
    Covered("{type: splitter, out_size: 1}", "a: {1s: {}}", ()),
]
