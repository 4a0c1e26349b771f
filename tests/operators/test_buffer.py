"""The `buffer` transform: its triggers, its bound, and what it refuses."""

import pytest
from marshmallow import ValidationError
from reactivex.testing import ReactiveTest, TestScheduler
from reactivex.testing.marbles import marbles_testing

from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.schema.records import faults_of
from headrace.operators.buffer import Buffer
from tests.covered import Covered, of_condition
from tests.doubles import StubContext, refusals
from tests.marbles import Broker, over_lists
from tests.promises import promise

on_next, on_error, on_completed = (
    ReactiveTest.on_next,
    ReactiveTest.on_error,
    ReactiveTest.on_completed,
)
subscribe = ReactiveTest.subscribe


@pytest.fixture
def ctx():
    return StubContext()


def released(buffer, ctx, *arrivals, disposed=1000):
    """Return what a buffer hands on, and when, for batches that arrive at their times."""
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(*arrivals)
    seen = scheduler.start(
        lambda: batches.pipe(over_lists(buffer.operator(ctx))), disposed=disposed
    )
    return seen.messages


def timers(scheduler):
    """Return when anything is still going to happen, the arrivals included."""
    queue = scheduler._queue.items
    return sorted(item.duetime.timestamp() for item, _ in queue if not item.is_cancelled())


# --- seconds


def test_the_clock_starts_at_the_first_held_message(ctx):
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(
        on_next(250, ["a"]), on_next(255, ["b"]), on_next(290, ["c"]), on_completed(400)
    )

    buffer = over_lists(Buffer(seconds=10, max_messages=100).operator(ctx))
    seen = scheduler.start(lambda: batches.pipe(buffer))

    assert seen.messages == [on_next(260, ["a", "b"]), on_next(300, ["c"]), on_completed(400)]
    assert batches.subscriptions == [subscribe(200, 400)]


def test_what_is_held_is_released_on_completion(ctx):
    with marbles_testing() as (start, _, hot, expected):
        batches = hot("-a-b------c--|", {"a": [1], "b": [2], "c": [3]})
        buffer = over_lists(Buffer(seconds=4, max_messages=100).operator(ctx))

        seen = start(batches.pipe(buffer))

        assert seen == expected("-----x-------(y,|)", {"x": [1, 2], "y": [3]})


def test_an_error_passes_after_what_is_held_is_handed_on(ctx):
    cause = RuntimeError("the source broke")
    buffer = Buffer(seconds=10, max_messages=100)

    seen = released(buffer, ctx, on_next(250, ["a"]), on_error(255, cause))

    assert seen == [on_next(255, ["a"]), on_error(255, cause)]


def test_disposal_in_the_middle_of_a_window_drops_the_clock(ctx):
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(on_next(250, ["a"]), on_next(300, ["b"]))
    buffer = over_lists(Buffer(seconds=10, max_messages=100).operator(ctx))
    seen = []
    subscription = batches.pipe(buffer).subscribe(seen.append, scheduler=scheduler)
    scheduler.advance_to(255)

    subscription.dispose()

    assert timers(scheduler) == [300]
    scheduler.advance_to(1000)
    assert seen == []


def test_what_is_held_at_disposal_is_not_acknowledged(ctx):
    broker, scheduler = Broker(), TestScheduler()
    deliveries = scheduler.create_hot_observable(
        on_next(250, broker.deliver(["a"])), on_completed(400)
    )
    buffer = Buffer(seconds=10, max_messages=100).operator(ctx)

    seen = scheduler.start(lambda: deliveries.pipe(buffer), disposed=255)

    assert (seen.messages, broker.acknowledged) == ([], [])
    assert broker.window.used == 0


def test_seconds_beyond_all_calendars_are_never_over(ctx):
    arrivals = on_next(250, ["a"]), on_next(300, ["b"]), on_completed(400)

    for seconds in (10**9 + 1, 10**30):
        assert released(Buffer(seconds=seconds, max_messages=9), ctx, *arrivals) == [
            on_next(400, ["a", "b"]),
            on_completed(400),
        ]


def test_an_idle_buffer_runs_no_clock(ctx):
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(
        on_next(250, [1]), on_next(260, [2]), on_completed(400)
    )
    buffer = over_lists(Buffer(size=2, seconds=100).operator(ctx))
    batches.pipe(buffer).subscribe(scheduler=scheduler)

    waiting = [scheduler.advance_to(time) or timers(scheduler) for time in (240, 255, 265)]

    assert waiting == [[250, 260, 400], [260, 350, 400], [400]]


def test_a_batch_that_arrives_when_the_time_is_over_is_held_for_the_next_release(ctx):
    # At 260 the arrival is looked at before the timer.
    buffer = Buffer(seconds=10, max_messages=100)

    seen = released(
        buffer,
        ctx,
        on_next(250, ["a"]),
        on_next(260, ["b"]),
        on_next(265, ["c"]),
        on_completed(400),
    )

    assert seen == [on_next(260, ["a"]), on_next(270, ["b", "c"]), on_completed(400)]


# --- size


@promise("buffer.transform.holds")
def test_batches_of_exactly_size_leave_as_they_fill(ctx):
    buffer = Buffer(size=3)

    seen = released(
        buffer,
        ctx,
        on_next(210, [1, 2]),
        on_next(220, [3, 4, 5, 6, 7, 8, 9, 10]),
        on_next(230, [11]),
        on_completed(300),
    )

    assert seen == [
        on_next(220, [1, 2, 3]),
        on_next(220, [4, 5, 6]),
        on_next(220, [7, 8, 9]),
        on_next(300, [10, 11]),
        on_completed(300),
    ]
    assert ctx.warnings == []


def test_after_a_cut_by_size_the_clock_counts_from_the_first_message_of_the_remainder(ctx):
    buffer = Buffer(size=3, seconds=10)

    seen = released(
        buffer,
        ctx,
        on_next(250, [1, 2]),
        on_next(255, [3, 4]),
        on_next(262, [5]),
        on_completed(400),
    )

    assert seen == [on_next(255, [1, 2, 3]), on_next(265, [4, 5]), on_completed(400)]


def test_a_release_by_seconds_hands_on_less_than_size(ctx):
    buffer = Buffer(size=3, seconds=10)

    seen = released(buffer, ctx, on_next(250, [1]), on_next(300, [2, 3, 4]), on_completed(400))

    assert seen == [on_next(260, [1]), on_next(300, [2, 3, 4]), on_completed(400)]


def test_an_empty_batch_is_ignored(ctx):
    buffer = Buffer(seconds=10, max_messages=100)

    seen = released(buffer, ctx, on_next(250, []), on_next(255, ["a"]), on_completed(400))

    assert seen == [on_next(265, ["a"]), on_completed(400)]


# --- max_messages


@promise("buffer.transform.holds")
def test_max_messages_is_a_hard_cap_tested_after_each_message(ctx):
    buffer = Buffer(seconds=100, max_messages=4)

    seen = released(buffer, ctx, on_next(250, [1, 2, 3]), on_next(255, [4, 5, 6, 7, 8, 9]))

    assert seen == [
        on_next(255, [1, 2, 3, 4]),
        on_next(255, [5, 6, 7, 8]),
        on_next(355, [9]),
    ]


def test_overflow_is_warned_about_once(ctx):
    buffer = Buffer(seconds=100, max_messages=2)

    released(buffer, ctx, *(on_next(250 + 10 * turn, [1, 2, 3]) for turn in range(9)))

    assert ctx.warnings == [
        "held 2 messages ('max_messages') before 100 seconds were over: released early"
    ]


def test_size_is_filled_before_the_cap_is_looked_at(ctx):
    buffer = Buffer(size=2, seconds=100, max_messages=2)

    seen = released(buffer, ctx, on_next(250, [1, 2, 3]), on_completed(400))

    assert seen == [on_next(250, [1, 2]), on_next(350, [3]), on_completed(400)]
    assert ctx.warnings == []


# --- what it tells


def test_it_tells_how_many_messages_it_holds(ctx):
    scheduler = TestScheduler()
    batches = scheduler.create_hot_observable(on_next(210, [1, 2]), on_next(220, [3, 4]))
    batches.pipe(over_lists(Buffer(size=3).operator(ctx))).subscribe(scheduler=scheduler)

    [count] = ctx.holding
    held = [scheduler.advance_to(time) or count() for time in (205, 215, 225)]

    assert held == [0, 2, 1]


def test_it_looks_at_no_field():
    assert Buffer(size=3).field_use() == FieldUse.of()


# --- what is refused


@pytest.mark.parametrize(
    ("document", "code", "refusal"),
    [
        ({}, "no-trigger", ": a buffer needs a trigger that releases what it holds"),
        (
            {"max_messages": 5},
            "no-trigger",
            ": a buffer needs a trigger that releases what it holds",
        ),
        (
            {"seconds": 5},
            "no-bound",
            ": a buffer without 'size' needs 'max_messages' to bound what it holds",
        ),
        (
            {"size": 10, "max_messages": 9},
            "out-of-range",
            "max_messages: 'max_messages' is below 'size' (10), so no batch would ever fill",
        ),
        ({"size": 0}, "out-of-range", "size: expected an integer of at least 1, found 0"),
        (
            {"size": 1, "seconds": 0},
            "out-of-range",
            "seconds: expected an integer of at least 1, found 0",
        ),
        (
            {"size": 1, "max_messages": 0},
            "out-of-range",
            "max_messages: expected an integer of at least 1, found 0",
        ),
        (
            {"size": 1, "seconds": 1.0},
            "wrong-type",
            "seconds: expected an integer of at least 1, found 1.0",
        ),
    ],
)
def test_a_buffer_that_nothing_releases_or_bounds_is_refused(document, code, refusal):
    with pytest.raises(ValidationError) as refused:
        Buffer.load(document)

    assert [fault.code for fault in faults_of(refused.value)] == [code]
    assert refusals(Buffer, document) == [refusal]


@pytest.mark.parametrize(
    "document",
    [
        {"size": 10},
        {"size": 10, "max_messages": 10},
        {"size": 10, "seconds": 5},
        {"seconds": 5, "max_messages": 1},
        {"size": 10, "seconds": None},
    ],
)
def test_any_one_trigger_is_enough_and_size_bounds_as_well(document):
    assert Buffer.load(document).dump() == {
        "type": "buffer",
        **{name: value for name, value in document.items() if value is not None},
    }


# --- its branches, for the coverage of tests


def test_a_window_whose_time_comes_with_a_batch_is_let_go_by_its_time(ctx):
    arrivals = on_next(250, ["a"]), on_next(260, ["b"]), on_completed(265)

    seen = released(Buffer(seconds=10, max_messages=100), ctx, *arrivals)

    assert seen == [on_next(260, ["a"]), on_next(265, ["b"]), on_completed(265)]
    assert ctx.taken == [("seconds", ("seconds",))]


GATE = "until: {key: k, conditions: [{type: string, field: mode, operator: equal_to, value: run}]}"
COVERED = [
    Covered(
        f"{{type: buffer, seconds: 5, max_messages: 3, {GATE}}}",
        "a: {1s: {}, 10s: [{}, {}, {}], 19s: {}}, state.last: {20s: {k: {mode: run}}}",
        (
            "'seconds' never let go",
            "'until' never let go",
            "'max_messages' never let go",
            *of_condition("mode"),
        ),
    ),
    Covered(
        "{type: buffer, size: 2, max_messages: 9, seconds: 5}",
        "a: {1s: [{}, {}, {}]}",
        ("'size' never let go", "'seconds' never let go"),
    ),
]
