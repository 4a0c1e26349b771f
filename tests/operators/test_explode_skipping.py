"""The `explode` transform under `on_error: skip`: what fails costs itself alone."""

import gc
import weakref

import pytest

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed
from tests.operators.exploded import TOO_MUCH, Turns, skipped
from tests.virtual import virtual


class Weighed(dict):
    """A message to which there can be a weak reference."""


OBJECTS = "expected objects, or an 'as' to put anything in"


def test_what_fails_costs_itself_and_the_items_of_the_others_go_on_in_order():
    batch = [
        {"x": [{"n": 0}, {"n": 1}]},
        {"x": "abc"},
        {"x": [{"n": 2}, 5]},
        {},
        {"x": []},
        7,
        {"x": [{"n": 3}, {"n": 4}, "abc"]},
        {"x": [{"n": 5}]},
    ]

    made, lost = skipped({}, *batch)

    assert made == [[{"n": 0}, {"n": 1}, {"n": 5}]]
    assert lost == {
        "field 'x' is a string: expected a list": 1,
        f"field 'x' holds a number: {OBJECTS}": 1,
        f"field 'x' holds a string: {OBJECTS}": 1,
        "field 'x' is missing or null": 2,
    }
    assert skipped({}, {"x": 5}, {"x": [5]})[0] == []


@pytest.mark.parametrize("options", [{"as": "y.z"}, {"index_as": "y.z"}])
def test_an_item_that_cannot_be_put_where_it_belongs_costs_its_message(options):
    bad = {"x": [{}, {"y": 5}], "y": 5}

    made, lost = skipped(options, bad, {"x": [{}]}, bad)

    assert [len(batch) for batch in made] == [1]
    assert lost == {"cannot write 'y.z': 'y' is not an object": 2}


@pytest.mark.parametrize("policy", ["skip", "keep"])
def test_what_on_missing_takes_is_not_lost(policy):
    made, lost = skipped({"on_missing": policy}, {}, {"x": [{}]}, {"x": 5})

    assert (made, lost.total()) == ([[{}, {}] if policy == "keep" else [{}]], 1)


def test_a_large_message_is_cut_off_where_it_fails():
    many = [{"n": n} for n in range(LARGE_BATCH * 5)]

    made, lost = skipped({}, {"x": [*many, 5]}, {"x": many}, {"x": [*many, 5]})

    assert made == [many]
    assert lost == {f"field 'x' holds a number: {OBJECTS}": 2}


def test_a_message_beyond_a_bound_alone_costs_itself_and_all_together_their_batch():
    document = {"max_items": 2}
    too_many = "makes 3 messages, at most 2 are allowed ('max_items')"

    assert skipped(document, {"x": [{}] * 3}, {"x": [{}] * 2}) == ([[{}] * 2], {too_many: 1})
    with pytest.raises(BatchFailed, match="makes 3 messages"):
        skipped(document, {"x": [{}] * 2}, {"x": [{}]})
    # One that is lost for its item has been counted by then.
    with pytest.raises(BatchFailed, match="makes 4 messages"):
        skipped(document, {"x": [{}, 5]}, {"x": [{}] * 2})


def test_so_does_one_that_shares_too_much_with_its_items():
    shares = {"x": [{}] * 100_000, "t": "a" * 300}
    document = {"keep": {"t": "t"}, "max_items": 1_000_000}

    made, lost = skipped(document, shares, {"x": [{}]})

    assert (made, [*lost.values()]) == ([[{}]], [1])
    assert TOO_MUCH in lost
    with pytest.raises(BatchFailed, match=TOO_MUCH):
        skipped(document, {"x": [{}] * 50_000, "t": "a" * 300}, shares | {"x": [{}] * 50_000})


@virtual
async def test_of_a_batch_that_fails_no_message_is_told_of_alone_and_nothing_is_kept():
    turns = Turns({"from": "x", "on_error": "skip", "max_items": 1})
    message = Weighed(x=5)
    known = weakref.ref(message)

    await turns.takes(message, {"x": [{}]}, {"x": [{}]})
    assert turns.ctx.failures == ["makes 2 messages, at most 1 are allowed ('max_items')"]
    assert not turns.ctx.lost
    gc.disable()
    try:
        del message
        assert known() is None
    finally:
        gc.enable()
