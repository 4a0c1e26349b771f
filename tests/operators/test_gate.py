"""`until`: a buffer that waits for what a bucket holds."""

import pytest
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest

from headrace.compiler.buckets import WHOLE, Bounds
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.component.states import PipelineState
from headrace.operators.buffer import Buffer
from tests.doubles import StubContext
from tests.marbles import over_lists
from tests.operators.gated import AUTO, Marbles, every_combination, gated, released

on_next, on_error, on_completed = (
    ReactiveTest.on_next,
    ReactiveTest.on_error,
    ReactiveTest.on_completed,
)


# --- the gate alone


def test_a_write_that_opens_the_gate_releases_everything_at_once_as_one_batch():
    seen = released(
        gated(max_messages=100),
        [on_next(210, ["a", "b"]), on_next(220, ["c"]), on_completed(400)],
        {250: "auto"},
    )

    assert seen == [on_next(250, ["a", "b", "c"]), on_completed(400)]


def test_while_the_gate_is_open_every_batch_passes_straight_through():
    seen = released(
        gated(max_messages=100),
        [on_next(210, ["a"]), on_next(220, ["b", "c"]), on_completed(400)],
        {205: "auto"},
    )

    assert seen == [on_next(210, ["a"]), on_next(220, ["b", "c"]), on_completed(400)]


def test_a_batch_that_passes_through_an_open_gate_is_neither_cut_nor_warned_about():
    it = Marbles()

    seen = it.released(
        gated(max_messages=2).operator(it.ctx),
        arrivals=[on_next(210, [1, 2, 3, 4, 5]), on_completed(400)],
        writes={205: "auto"},
    )

    assert seen == [on_next(210, [1, 2, 3, 4, 5]), on_completed(400)]
    assert it.ctx.warnings == []


def test_a_gate_that_is_closed_again_holds_again():
    seen = released(
        gated(max_messages=100),
        [on_next(210, ["a"]), on_next(240, ["b"]), on_next(270, ["c"]), on_completed(400)],
        {220: "auto", 250: "manual", 300: "auto"},
    )

    assert seen == [
        on_next(220, ["a"]),
        on_next(240, ["b"]),
        on_next(300, ["c"]),
        on_completed(400),
    ]


def test_a_write_that_leaves_the_gate_closed_releases_nothing():
    seen = released(
        gated(max_messages=100),
        [on_next(210, ["a"]), on_completed(400)],
        {220: "manual", 230: "off"},
    )

    assert seen == [on_next(400, ["a"]), on_completed(400)]


def test_a_gate_is_closed_by_expiry_and_opened_again():
    # Opened at 205, it stays so for 30 seconds: not for longer, because only a write refreshes.
    seen = released(
        gated(max_messages=100),
        [on_next(time, [time]) for time in (200.5, 210, 234, 235, 250, 270)],
        {205: "auto", 260: "auto"},
        idle_seconds=30,
    )

    assert seen == [
        on_next(205, [200.5]),
        on_next(210, [210]),
        on_next(234, [234]),
        on_next(260, [235, 250]),
        on_next(270, [270]),
    ]


def test_an_entry_that_made_room_for_others_leaves_the_gate_closed():
    it = Marbles()
    it.bucket.bounds = Bounds(max_keys=1)
    it.mode("auto")
    it.write({"mode": "auto"}, key="another machine")

    seen = it.released(gated(max_messages=9).operator(it.ctx), arrivals=[on_next(210, ["a"])])

    assert seen == []


# --- which entry, and what of it


@pytest.mark.parametrize(
    ("key", "written", "is_open"),
    [
        (None, WHOLE, True),
        ("", WHOLE, True),
        (None, "m1", False),
        ("m1", "m1", True),
        ("m1", "m2", False),
        ("m1", WHOLE, False),
        ("a.b", "a.b", True),
        (" m1 ", "m1", False),
    ],
)
def test_the_gate_looks_under_one_key_taken_as_it_stands(key, written, is_open):
    it = Marbles()
    it.scheduler.schedule_absolute(250, lambda *_: it.write({"mode": "auto"}, key=written))

    seen = it.released(
        gated(max_messages=9, key=key).operator(it.ctx), arrivals=[on_next(210, ["a"])]
    )

    assert seen == ([on_next(250, ["a"])] if is_open else [])


def test_a_gate_may_look_at_another_bucket_than_that_of_its_pipeline():
    it, other = Marbles(), Marbles()
    it.ctx = StubContext(
        state=PipelineState(bucket="machines"),
        buckets={"machines": it.bucket, "lines": other.bucket},
    )
    it.later({220: "auto"})
    it.scheduler.schedule_absolute(250, lambda *_: other.mode("auto"))

    seen = it.released(
        gated(max_messages=9, bucket="lines").operator(it.ctx), arrivals=[on_next(210, ["a"])]
    )

    assert seen == [on_next(250, ["a"])]


HOT = {"type": "numeric", "field": "press.temp", "operator": "greater_than", "value": 80}


@pytest.mark.parametrize(
    ("values", "is_open"),
    [
        ({"mode": "auto", "press": {"temp": 81}}, True),
        ({"mode": "auto", "press.temp": 81}, True),
        ({"mode": "auto", "press": {"temp": 80}}, False),
        ({"mode": "manual", "press": {"temp": 81}}, False),
        ({"mode": "auto"}, False),
        ({"mode": "auto", "press": {"temp": None}}, False),
        ({"mode": None, "press": {"temp": 81}}, False),
        ({"mode": "auto", "press": {"temp": "81"}}, False),
        ({"mode": ["auto"], "press": {"temp": 81}}, False),
        ({"mode": "auto", "press": {"temp": True}}, False),
    ],
)
def test_all_conditions_have_to_hold_for_the_entry_as_an_object(values, is_open):
    it = Marbles()
    it.scheduler.schedule_absolute(250, lambda *_: it.write(values))

    seen = it.released(
        gated(AUTO, HOT, max_messages=9).operator(it.ctx), arrivals=[on_next(210, ["a"])]
    )

    assert seen == ([on_next(250, ["a"])] if is_open else [])


def test_several_writes_together_open_what_each_alone_does_not():
    it = Marbles()
    it.scheduler.schedule_absolute(220, lambda *_: it.write({"press": {"temp": 90}}))
    it.later({250: "auto"})

    seen = it.released(
        gated(AUTO, HOT, max_messages=9).operator(it.ctx), arrivals=[on_next(210, ["a"])]
    )

    assert seen == [on_next(250, ["a"])]


# --- who watches, and for how long


def watching(buffer, *arrivals, disposed=1000):
    """Return how many watch the bucket at some times; the buffer is subscribed from 200 on."""
    it, counts = Marbles(), []
    for time in (150, 205, 255, 1005):
        it.scheduler.schedule_absolute(time, lambda *_: counts.append(len(it.bucket._watchers)))
    it.released(buffer.operator(it.ctx), arrivals=arrivals, disposed=disposed)
    it.scheduler.start()
    return counts


def test_only_a_buffer_that_runs_watches():
    assert watching(gated(size=3)) == [0, 1, 1, 0]


@every_combination
def test_completion_an_error_and_disposal_leave_the_bucket_unwatched(options):
    buffer, arrival = gated(**options), on_next(210, ["a"])

    assert watching(buffer, arrival, on_completed(250)) == [0, 1, 0, 0]
    assert watching(buffer, arrival, on_error(250, RuntimeError("gone"))) == [0, 1, 0, 0]
    assert watching(buffer, arrival, disposed=250) == [0, 1, 0, 0]


def test_a_buffer_without_a_gate_watches_nothing():
    assert watching(Buffer(size=3)) == [0, 0, 0, 0]


def test_an_operator_that_is_subscribed_again_watches_again():
    it, seen = Marbles(), []
    buffer = gated(size=10).operator(it.ctx)
    for message in ("a", "b"):
        source = Subject()
        subscription = source.pipe(over_lists(buffer)).subscribe(
            seen.append, scheduler=it.scheduler
        )
        it.mode("manual")
        source.on_next([message])
        it.mode("auto")
        subscription.dispose()

    assert seen == [["a"], ["b"]]
    assert it.bucket._watchers == {}


def test_an_idle_buffer_holds_nothing_and_runs_no_clock():
    it = Marbles()
    source = Subject()
    buffer = gated(seconds=100, max_messages=10).operator(it.ctx)
    source.pipe(over_lists(buffer)).subscribe(scheduler=it.scheduler)
    it.mode("auto")

    source.on_next(["a"])
    it.mode("auto")

    assert [count() for count in it.ctx.holding] == [0]
    assert not it.scheduler._queue.items


def test_a_release_by_the_gate_stops_the_clock():
    it = Marbles()
    source = Subject()
    buffer = gated(seconds=100, max_messages=10).operator(it.ctx)
    source.pipe(over_lists(buffer)).subscribe(scheduler=it.scheduler)
    source.on_next(["a"])
    [(timer, _)] = it.scheduler._queue.items

    it.mode("auto")

    assert timer.is_cancelled()


# --- what is known of it before it runs


def test_it_looks_at_no_field_of_a_message():
    assert gated(size=3).field_use() == FieldUse.of()


@pytest.mark.parametrize(
    ("options", "arriving", "largest"),
    [
        ({"size": 3}, 1, 3),
        ({"size": 3}, None, 3),
        ({"max_messages": 3}, 1, 3),
        ({"max_messages": 3}, 5, 7),  # two held, and five that find the gate open
        ({"max_messages": 3}, None, None),
        ({"max_messages": 1}, 1, 1),
        ({"seconds": 9, "max_messages": 3}, 1, 3),
    ],
)
def test_how_large_a_batch_can_be_behind_it(options, arriving, largest):
    assert gated(**options).passes(Passing().at_most(arriving)).largest == largest
