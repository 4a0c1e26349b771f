"""The buffer of an input: when it hands on, and what it owes."""

import pytest
from reactivex.testing import ReactiveTest, TestScheduler
from reactivex.testing.marbles import marbles_testing

from headrace.compiler.component.inputbuffers import Either, Static, Tumbling
from headrace.compiler.runtime.building import input_buffer
from tests.doubles import StubContext
from tests.marbles import Broker, over_lists

on_next, on_error, on_completed = (
    ReactiveTest.on_next,
    ReactiveTest.on_error,
    ReactiveTest.on_completed,
)
subscribe = ReactiveTest.subscribe


@pytest.fixture
def ctx():
    return StubContext()


def handed_on(buffer, ctx, *arrivals, disposed=1000):
    """Return what an input buffer hands on, and when, for batches that arrive at their times."""
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(*arrivals)
    seen = scheduler.start(
        lambda: batches.pipe(over_lists(input_buffer(buffer, ctx))), disposed=disposed
    )
    return seen.messages


def test_a_static_buffer_hands_on_after_so_many_messages(ctx):
    seen = handed_on(
        Static(size=3), ctx, *(on_next(210 + turn, [turn]) for turn in range(7)), on_completed(300)
    )

    assert seen == [
        on_next(212, [0, 1, 2]),
        on_next(215, [3, 4, 5]),
        on_next(300, [6]),
        on_completed(300),
    ]


def test_size_is_a_floor_because_an_arriving_batch_is_never_split(ctx):
    seen = handed_on(
        Static(size=4),
        ctx,
        on_next(210, [1, 2, 3]),
        on_next(220, [4, 5, 6, 7, 8]),
        on_completed(300),
    )

    assert seen == [on_next(220, [1, 2, 3, 4, 5, 6, 7, 8]), on_completed(300)]


def test_a_tumbling_window_is_measured_from_its_first_message(ctx):
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(
        on_next(250, ["a"]), on_next(255, ["b"]), on_next(290, ["c"]), on_completed(400)
    )

    seen = scheduler.start(
        lambda: batches.pipe(over_lists(input_buffer(Tumbling(window_seconds=10), ctx)))
    )

    assert seen.messages == [on_next(260, ["a", "b"]), on_next(300, ["c"]), on_completed(400)]
    assert batches.subscriptions == [subscribe(200, 400)]


def test_whichever_is_reached_first_ends_the_batch(ctx):
    seen = handed_on(
        Either(size=2, window_seconds=10),
        ctx,
        on_next(250, [1]),
        on_next(255, [2]),
        on_next(257, [3]),
        on_next(270, [4]),
        on_completed(400),
    )

    assert seen == [
        on_next(255, [1, 2]),
        on_next(267, [3]),
        on_next(280, [4]),
        on_completed(400),
    ]


def test_a_window_with_no_message_never_closes(ctx):
    seen = handed_on(Tumbling(window_seconds=10), ctx, on_next(250, []), on_completed(400))

    assert seen == [on_completed(400)]


@pytest.mark.parametrize("buffer", [Tumbling(window_seconds=0), Either(size=9, window_seconds=0)])
def test_a_window_of_0_seconds_closes_at_once(ctx, buffer):
    seen = handed_on(buffer, ctx, on_next(210, [1, 2]), on_next(210, [3]), on_completed(300))

    assert seen == [on_next(210, [1, 2]), on_next(210, [3]), on_completed(300)]


def test_a_size_of_0_is_read_as_1(ctx):
    seen = handed_on(Static(size=0), ctx, on_next(210, [1, 2]), on_completed(300))

    assert seen == [on_next(210, [1, 2]), on_completed(300)]


@pytest.mark.parametrize(
    "buffer", [Static(size=9), Tumbling(window_seconds=0), Either(size=1, window_seconds=5)]
)
def test_empty_batches_are_swallowed_acknowledged_and_start_no_clock(ctx, buffer):
    broker, scheduler = Broker(), TestScheduler()
    deliveries = scheduler.create_hot_observable(on_next(250, broker.deliver([])))

    seen = scheduler.start(lambda: deliveries.pipe(input_buffer(buffer, ctx)))

    assert seen.messages == []
    assert broker.acknowledged == [[]]
    assert broker.window.used == 0


def test_what_is_held_is_handed_on_when_the_input_ends(ctx):
    with marbles_testing() as (start, _, hot, expected):
        batches = hot("-a-b------c--|", {"a": [1], "b": [2], "c": [3]})

        seen = start(batches.pipe(over_lists(input_buffer(Tumbling(window_seconds=4), ctx))))

        assert seen == expected("-----x-------(y,|)", {"x": [1, 2], "y": [3]})


def test_what_is_held_is_handed_on_before_an_error_of_the_source(ctx):
    cause = RuntimeError("the source broke")

    seen = handed_on(Tumbling(window_seconds=10), ctx, on_next(250, ["a"]), on_error(255, cause))

    assert seen == [on_next(255, ["a"]), on_error(255, cause)]


def test_disposal_in_the_middle_of_a_window_hands_on_nothing_and_acknowledges_nothing(ctx):
    broker, scheduler = Broker(), TestScheduler()
    deliveries = scheduler.create_hot_observable(on_next(250, broker.deliver(["a"])))

    seen = scheduler.start(
        lambda: deliveries.pipe(input_buffer(Tumbling(window_seconds=10), ctx)), disposed=255
    )

    assert (seen.messages, broker.acknowledged) == ([], [])


def test_everything_in_a_combined_batch_is_acknowledged_together(ctx):
    broker, scheduler = Broker(), TestScheduler()
    deliveries = scheduler.create_hot_observable(
        on_next(210, broker.deliver([1])), on_next(220, broker.deliver([2, 3]))
    )

    seen = scheduler.start(lambda: deliveries.pipe(input_buffer(Static(size=3), ctx)))

    [record] = seen.messages
    assert (record.time, record.value.value.batch) == (220, [1, 2, 3])
    assert (broker.acknowledged, broker.window.used) == ([], 1)
    record.value.value.done()
    assert (broker.acknowledged, broker.window.used) == ([[1], [2, 3]], 0)
