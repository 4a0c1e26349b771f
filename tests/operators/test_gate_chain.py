"""What a release by a gate leads to further on in its chain, and what becomes of a fault there."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest

from headrace.operators.buffer import Buffer
from tests.marbles import Broker, over_lists
from tests.operators.gated import EVENTS, OPTIONS, Marbles, breaks, gated

on_next, on_completed = (
    ReactiveTest.on_next,
    ReactiveTest.on_completed,
)


def test_a_remember_behind_the_buffer_may_open_its_gate():
    # The first cut opens it while the second is still to come: nothing overtakes, nothing is lost.
    it = Marbles()

    seen = it.released(
        gated(size=2).operator(it.ctx),
        it.writes(lambda batch: "auto"),
        arrivals=[on_next(210, [1, 2, 3, 4, 5]), on_next(220, [6]), on_completed(400)],
    )

    assert seen == [
        on_next(210, [1, 2]),
        on_next(210, [3, 4]),
        on_next(210, [5]),
        on_next(220, [6]),
        on_completed(400),
    ]


def test_what_a_bound_cuts_goes_together_once_the_gate_has_opened_on_the_way():
    it = Marbles()

    seen = it.released(
        gated(max_messages=2).operator(it.ctx),
        it.writes(lambda batch: "auto"),
        arrivals=[on_next(210, [1, 2, 3, 4, 5])],
    )

    assert seen == [on_next(210, [1, 2]), on_next(210, [3, 4, 5])]


def test_a_release_may_close_the_gate_behind_itself():
    it = Marbles()

    seen = it.released(
        gated(max_messages=9).operator(it.ctx),
        it.writes(lambda batch: "manual"),
        arrivals=[on_next(210, [1]), on_next(220, [2]), on_next(240, [3]), on_next(250, [4])],
        writes={230: "auto", 260: "auto"},
    )

    assert seen == [on_next(230, [1, 2]), on_next(260, [3, 4])]


def test_a_first_cut_may_close_the_gate_for_the_rest():
    it = Marbles()

    seen = it.released(
        gated(size=2).operator(it.ctx),
        it.writes(lambda batch: "manual"),
        arrivals=[on_next(210, [1, 2, 3])],
        writes={205: "auto"},
    )

    assert seen == [on_next(210, [1, 2])]


def test_a_release_by_the_clock_may_open_the_gate():
    it = Marbles()

    seen = it.released(
        gated(seconds=10, max_messages=9).operator(it.ctx),
        it.writes(lambda batch: "auto"),
        arrivals=[on_next(210, [1]), on_next(211, [2]), on_next(225, [3]), on_completed(400)],
    )

    assert seen == [on_next(220, [1, 2]), on_next(225, [3]), on_completed(400)]


def test_what_is_released_at_the_end_may_open_the_gate():
    it = Marbles()

    seen = it.released(
        gated(max_messages=9).operator(it.ctx),
        it.writes(lambda batch: "auto"),
        arrivals=[on_next(210, [1]), on_completed(250)],
    )

    assert seen == [on_next(250, [1]), on_completed(250)]


def test_a_remember_before_the_buffer_releases_what_is_held_before_its_own_batch():
    it = Marbles()

    seen = it.released(
        it.writes(lambda batch: "auto" if 3 in batch else "manual"),
        gated(max_messages=9).operator(it.ctx),
        arrivals=[on_next(210, [1]), on_next(220, [2]), on_next(230, [3]), on_next(240, [4])],
    )

    assert seen == [on_next(230, [1, 2]), on_next(230, [3])]


def test_two_gates_that_open_each_other_release_each_message_once():
    it = Marbles()
    seen, sources = [], {}
    for own, other in (("x", "y"), ("y", "x")):

        def opens(batch, other=other):
            it.write({"mode": "auto"}, key=other)
            return [batch]

        sources[own] = Subject()
        buffer = gated(max_messages=9, key=own).operator(it.ctx)
        chain = over_lists(lambda source, b=buffer, o=opens: source.pipe(b, it.ctx.lift(o)))
        sources[own].pipe(chain).subscribe(seen.append, scheduler=it.scheduler)
    sources["x"].on_next([1, 2])
    sources["y"].on_next([3, 4])

    it.write({"mode": "auto"}, key="x")

    assert seen == [[1, 2], [3, 4]]  # the other is told when the first batch is through


def test_a_gate_that_is_opened_by_a_later_one_in_its_own_chain_lets_nothing_overtake():
    it = Marbles()
    source, seen = Subject(), []
    earlier = gated(max_messages=9, key="x").operator(it.ctx)
    later = gated(max_messages=9, key="y").operator(it.ctx)

    def opens(batch):
        it.write({"mode": "auto"}, key="x")
        return [batch]

    chain = over_lists(lambda source: source.pipe(earlier, later, it.ctx.lift(opens)))
    source.pipe(chain).subscribe(seen.append, scheduler=it.scheduler)
    it.write({"mode": "auto"}, key="x")
    source.on_next([1])
    it.write({"mode": "manual"}, key="x")
    source.on_next([2])

    it.write({"mode": "auto"}, key="y")

    assert seen == [[1], [2]]
    assert [count() for count in it.ctx.holding] == [0, 0]


def timed_behind_a_gate(arriving, **options):
    """Return what a buffer with ten seconds hands on, behind one that its own releases open.

    A batch of one is there from 210 on; what comes at 215 waits before it until 220.
    """
    it = Marbles()
    earlier = gated(max_messages=9, key="x").operator(it.ctx)
    later = gated(seconds=10, key="y", **options).operator(it.ctx)
    for time, word in ((205, "auto"), (212, "manual")):
        it.scheduler.schedule_absolute(
            time, lambda *_, word=word: it.write({"mode": word}, key="x")
        )

    def opens(batch):
        it.write({"mode": "auto"}, key="x")
        return [batch]

    arrivals = on_next(210, [1]), on_next(215, arriving), on_completed(400)
    return it.released(earlier, later, it.ctx.lift(opens), arrivals=arrivals)


def test_what_a_release_by_the_clock_brings_in_gets_a_clock_of_its_own():
    assert timed_behind_a_gate([2], max_messages=9) == [
        on_next(220, [1]),
        on_next(230, [2]),
        on_completed(400),
    ]


def test_what_a_release_by_the_clock_brings_in_may_fill_a_batch_at_once():
    assert timed_behind_a_gate([2, 3, 4], size=2) == [
        on_next(220, [1]),
        on_next(220, [2, 3]),
        on_next(230, [4]),
        on_completed(400),
    ]


def test_a_release_that_closes_the_gate_keeps_what_others_hold_behind_the_same_gate():
    it = Marbles()
    seen, sources = [], []
    for _ in range(2):
        sources.append(Subject())
        operators = gated(max_messages=9).operator(it.ctx), it.writes(lambda batch: "manual")
        chain = over_lists(lambda source, operators=operators: source.pipe(*operators))
        sources[-1].pipe(chain).subscribe(seen.append, scheduler=it.scheduler)
    for number, source in enumerate(sources):
        source.on_next([number])

    it.mode("auto")
    once = list(seen)
    it.mode("auto")

    assert (once, seen) == ([[0]], [[0], [1]])


@given(OPTIONS, OPTIONS, EVENTS, st.sets(st.integers(0, 200)))
@example({"max_messages": 4}, {"size": 2}, [("batch", 5), ("write", True)], {0})
def test_whatever_writes_on_the_way_nothing_is_lost_doubled_or_overtaken(
    options, more, events, opening
):
    # Two buffers in a chain, on the same gate; what comes behind them opens and closes it.
    it, broker, seen = Marbles(), Broker(), []
    source, sent = Subject(), 0

    def taken(delivery):
        seen.extend(delivery.batch)
        delivery.done()

    source.pipe(
        gated(**options).operator(it.ctx),
        gated(**more).operator(it.ctx),
        it.writes(lambda batch: "auto" if batch[-1] in opening else "manual"),
    ).subscribe(taken, scheduler=it.scheduler)
    for what, value in events:
        if what == "batch":
            source.on_next(broker.deliver([*range(sent, sent + value)]))
            sent += value
        elif what == "write":
            it.mode("auto" if value else "manual")
        else:
            it.scheduler.advance_by(value)
        held = sum(count() for count in it.ctx.holding)
        assert seen == [*range(sent - held)]
        assert broker.window.used == 0
    source.on_completed()

    assert seen == [*range(sent)]
    assert [message for batch in broker.acknowledged for message in batch] == seen
    assert it.bucket._watchers == {}


# --- faults of the chain behind it


@pytest.mark.parametrize(
    ("writes", "time"), [({230: "auto"}, 230), ({}, 310)], ids=["a write", "a timer"]
)
def test_a_fault_behind_a_release_is_the_streams_own_error(writes, time):
    it = Marbles()

    seen = it.released(
        gated(seconds=100, max_messages=9).operator(it.ctx),
        breaks,
        arrivals=[on_next(210, ["a"]), on_next(240, ["b"])],
        writes=writes,
    )

    [broke] = seen
    assert (broke.time, broke.value.kind, str(broke.value.exception)) == (
        time,
        "E",
        "an operator is broken",
    )
    assert it.bucket._watchers == {}


def test_a_fault_behind_a_release_at_the_end_is_the_streams_own_error():
    it = Marbles()
    operator = gated(max_messages=9).operator(it.ctx)

    seen = it.released(operator, breaks, arrivals=[on_next(210, ["a"]), on_completed(250)])

    assert [(each.time, each.value.kind) for each in seen] == [(250, "E")]


def test_a_buffer_behind_that_holds_messages_hands_on_the_error_though_it_breaks_as_well():
    it = Marbles()
    operators = [gated(max_messages=9).operator(it.ctx), Buffer(size=2).operator(it.ctx), breaks]

    seen = it.released(
        *operators,
        arrivals=[on_next(210, ["a", "b", "c"])],
        writes={250: "auto"},
    )

    assert [(each.time, each.value.kind) for each in seen] == [(250, "E")]


def test_a_fault_behind_a_batch_that_arrives_is_told_to_who_sent_it():
    it, source = Marbles(), Subject()
    operator = gated(max_messages=1).operator(it.ctx)
    chain = over_lists(lambda deliveries: deliveries.pipe(operator, breaks))
    source.pipe(chain).subscribe(scheduler=it.scheduler)

    with pytest.raises(RuntimeError, match="an operator is broken"):
        source.on_next(["a"])


def test_a_batch_that_a_step_fails_on_is_reported_and_the_next_goes_on():
    def step(batch):
        if 1 in batch:
            raise ValueError("no ones")
        return [batch]

    it = Marbles()

    seen = it.released(
        gated(max_messages=9).operator(it.ctx),
        it.ctx.lift(step),
        arrivals=[on_next(210, [1]), on_next(240, [2]), on_completed(300)],
        writes={230: "auto"},
    )

    assert seen == [on_next(240, [2]), on_completed(300)]
    assert it.ctx.failures == ["no ones"]
