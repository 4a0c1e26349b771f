"""What the live feed shows, what it leaves out, and that it says so."""

from __future__ import annotations

import asyncio
import json

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.families import Transform
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.channel import MOST_WAITING, RUN_BYTES
from headrace.compiler.runtime.monitoring.feed import Feed
from headrace.compiler.runtime.monitoring.liveevents import Event, Lagged
from headrace.operators.buffer import Buffer
from tests.stand_ins import Awaiting, Kept, Told, batches, does, pipeline, reads, run, takes

MIB = 1024 * 1024


def watched(script, transforms=(), *, seconds=0.0, before=0.0):
    """Return the events of a run, decoded; the listener comes after ``before`` seconds."""

    async def main():
        it = Engine(Clock(asyncio.get_running_loop()))
        listener = it.observe() if not before else None
        await run(it, pipeline("p", [reads(Told(it.clock, script))], transforms))
        if listener is None:
            await it.clock.sleep(before)
            listener = it.observe()
        await it.clock.sleep(seconds)
        return await read(listener, it.clock)

    return run_virtual(main)


async def read(listener, clock):
    events = []

    async def collect():
        async for told in listener:
            if isinstance(told, Lagged):
                events.append(told)
            else:
                events.extend(json.loads(event.data) for event in told.events)

    task = asyncio.ensure_future(collect())
    await clock.sleep(0.001)
    task.cancel()
    return events


def test_a_pass_is_an_input_event_and_an_output_event_per_resulting_batch():
    events = watched([batches([{"n": 1}])], [does(lambda b: [b, b])])

    assert events == [
        {
            "pipeline_id": "p",
            "stage": stage,
            "ts": 1767225600000,
            "seq": seq,
            "component": None,
            "payload": {"batch": {"messages": ['{"n":1}'], "total": 1, "skipped_messages": 0}},
        }
        for seq, stage in ((1, "input"), (2, "output"), (3, "output"))
    ]


def test_one_pass_in_100_ms_is_reported_and_the_rest_is_counted():
    script = [batches([1]), batches([2, 3]), batches([4]), 0.2, batches([5])]

    events = watched(script, seconds=1.0)

    assert shown(events) == [
        ("input", ["1"], 0),
        ("output", ["1"], 0),
        ("input", [], 3),
        ("output", [], 3),
        ("input", ["5"], 0),
        ("output", ["5"], 0),
    ]
    assert [e["seq"] for e in events] == [1, 2, 3, 4, 5, 6]


def shown(events):
    """Return of each batch event its stage, its messages, and how many were skipped."""
    batches = [(each["stage"], each["payload"]["batch"]) for each in events]
    return [(stage, one["messages"], one["skipped_messages"]) for stage, one in batches]


def test_a_new_listener_starts_with_fresh_counts():
    script = [batches([1], [2], [3]), 10.0, batches([4])]

    events = watched(script, before=5.0, seconds=10.0)

    assert [e["payload"]["batch"]["skipped_messages"] for e in events] == [0, 0]


def test_a_release_by_a_timer_is_an_output_event_alone():
    events = watched([batches([1], [2])], [Buffer(seconds=5, max_messages=9)], seconds=6.0)

    assert shown(events) == [("input", ["1"], 0), ("input", [], 1), ("output", ["1", "2"], 0)]


def test_a_release_is_reported_with_all_the_batches_that_come_of_it():
    transforms = [Buffer(seconds=5, max_messages=9), does(lambda b: [[each] for each in b])]

    events = watched([batches([1], [2], [3])], transforms, seconds=6.0)

    assert shown(events) == [
        ("input", ["1"], 0),
        ("input", [], 2),
        ("output", ["1"], 0),
        ("output", ["2"], 0),
        ("output", ["3"], 0),
    ]


def test_what_leaves_after_a_transform_has_waited_is_reported_with_its_pass():
    async def answered(batch):
        await Clock(asyncio.get_running_loop()).sleep(0.03)
        return [[*batch, "answered"]]

    script = [batches([1]), 1.0, batches([2], [3]), 1.0]

    events = watched(script, [does(answered, Awaiting)], seconds=3.0)

    assert shown(events) == [
        ("input", ["1"], 0),
        ("output", ["1", '"answered"'], 0),
        ("input", ["2"], 0),
        ("output", ["2", '"answered"'], 0),
        ("input", [], 1),
        ("output", [], 2),
    ]


class Pausing(Transform, kind="pausing"):
    """Pauses once for a batch that begins with a string."""

    def operator(self, ctx):
        return ctx.lift_pausing(lambda batch, _: Rest(batch) if batch[0] == "long" else [batch])


class Rest:
    def __init__(self, batch):
        self.batch = batch

    def resume(self, seconds):
        return [self.batch]


def test_what_leaves_after_a_pause_is_reported_with_its_pass_and_nothing_else_is():
    script = [batches([1], [2]), 1.0, batches(["long"]), 1.0]

    events = watched(script, [Pausing()], seconds=3.0)

    assert shown(events) == [
        ("input", ["1"], 0),
        ("output", ["1"], 0),
        ("input", [], 1),
        ("output", [], 1),
        ("input", ['"long"'], 0),
        ("output", ['"long"'], 0),
    ]


def test_a_batch_that_cannot_be_rendered_is_a_fault_and_ends_no_pipeline():
    async def main():
        it, kept = Engine(Clock(asyncio.get_running_loop())), Kept()
        source = Told(it.clock, [batches([10**5000]), 1.0, batches([1])])
        listener = it.observe()
        await run(it, pipeline("p", [reads(source)], [], [takes(kept)]))
        await it.clock.sleep(2)
        (view,) = it.graph.pipelines.values()
        return await read(listener, it.clock), view.status, len(kept.batches)

    (entered, left, *others), status, written = run_virtual(main)

    assert entered.startswith("pipeline 'p' input: ValueError: ")
    assert left.startswith("pipeline 'p' output: ValueError: ")
    assert [(each["seq"], each["stage"]) for each in others] == [(3, "input"), (4, "output")]
    assert (status, written) == ("running", 2)


def test_a_slow_listener_loses_the_oldest_and_is_told_how_many():
    script = [each for n in range(700) for each in (batches([n]), 0.2)]

    events = watched(script, seconds=200.0)

    assert isinstance(events[0], Lagged)
    assert events[0].count == 700 * 2 - 1024
    assert events[-1]["payload"]["batch"]["messages"] == ["699"]


def test_what_waits_for_a_listener_is_bounded_in_bytes_as_well():
    async def main():
        clock = Clock(asyncio.get_running_loop())
        feed = Feed(clock)
        listener = feed.observe()
        for number in range(5):
            feed.publish(Event(b"[%d]%s" % (number, b" " * 3 * MIB)), [listener.channel])
        return await read(listener, clock)

    assert run_virtual(main) == [Lagged(3), [3], [4]]


def test_events_that_go_while_a_listener_is_told_of_others_are_told_as_well():
    async def main():
        clock = Clock(asyncio.get_running_loop())
        feed = Feed(clock)
        listener = feed.observe()
        told = aiter(listener)
        for _ in range(2):
            for _ in range(MOST_WAITING + 5):
                feed.publish(Event(b"1"), [listener.channel])
            lagged = await anext(told)
            assert isinstance(lagged, Lagged)
            seen.append(lagged.count)
        return (await anext(told)).events

    seen: list[int] = []

    assert len(run_virtual(main)) == MOST_WAITING
    assert seen == [5, MOST_WAITING + 5]


def test_what_many_listeners_are_told_at_once_is_made_once_and_no_more_than_is_reasonable():
    async def main():
        clock = Clock(asyncio.get_running_loop())
        feed = Feed(clock)
        listeners = [feed.observe() for _ in range(3)]
        told = [aiter(each) for each in listeners]
        first = [asyncio.ensure_future(anext(each)) for each in told]
        await clock.sleep(0)
        for number in range(5):
            event = Event(b"%d" % number + b" " * RUN_BYTES * number)
            feed.publish(event, [listeners[0].channel])
        runs = await asyncio.gather(*first)
        return runs, [await anext(each) for each in told]

    first, second = run_virtual(main)

    assert [len(run.events) for run in first + second] == [2, 2, 2, 1, 1, 1]
    assert len(set(first)) == len(set(second)) == 1


class Slow(Clock):
    """A clock by which whatever the feed does takes a while."""

    took = 0.0

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.monotonic = self._later

    def _later(self) -> float:
        self.took += 0.001
        return self._loop.time() + self.took


def test_a_feed_that_takes_long_reports_less_often_and_says_what_it_left_out():
    async def main(kind):
        loop = asyncio.get_running_loop()
        it = Engine(kind(loop))
        listener = it.observe()
        for number in range(20):
            script = [each for n in range(200) for each in (batches([n]), 0.05)]
            await run(it, pipeline(f"p{number}", [reads(Told(it.clock, script))]))
        reading = asyncio.ensure_future(read_all(listener))
        await it.clock.sleep(15)
        listener.close()
        events = [json.loads(event.data) for run in await reading for event in run.events]
        return [each for each in events if each["stage"] == "input"]

    often, seldom = run_virtual(lambda: main(Clock)), run_virtual(lambda: main(Slow))

    assert len(often) == 20 * (100 + 1)  # the last pass was skipped: that is told after it
    assert 20 * 5 < len(seldom) < 20 * 50
    told = [each["payload"]["batch"] for each in seldom if each["pipeline_id"] == "p7"]
    assert sum(each["total"] + each["skipped_messages"] for each in told) == 200


def test_a_closed_feed_ends_every_stream():
    async def main():
        it = Engine(Clock(asyncio.get_running_loop()))
        listener = it.observe()
        reading = asyncio.ensure_future(read_all(listener))
        await it.clock.sleep(1)

        it.hush()

        assert await reading == []
        assert await read_all(it.observe()) == []

    run_virtual(main)


async def read_all(listener):
    return [event async for event in listener]
