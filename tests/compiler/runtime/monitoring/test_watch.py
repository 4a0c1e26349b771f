"""A listener can add up what happened: skipped passes and repeated failures are told at their end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring import watch
from headrace.compiler.runtime.monitoring.failures import cut
from headrace.compiler.runtime.monitoring.feed import Feed, Listener
from headrace.compiler.runtime.monitoring.liveevents import Run
from headrace.compiler.runtime.monitoring.watch import Watch
from tests.doubles import TickingClock
from tests.stand_ins import Told, batches, does, pipeline, reads, run
from tests.virtual import virtual


class Reading:
    """Reads all events, and keeps when each came: seconds since the beginning."""

    def __init__(self, clock: Clock, listener: Listener) -> None:
        self._clock, self._listener = clock, listener
        self.events: list[tuple[float, dict[str, Any]]] = []
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for told in self._listener:
            assert isinstance(told, Run)
            for event in told.events:
                self.events.append((round(self._clock.monotonic(), 3), json.loads(event.data)))

    def batches(self, stage: str) -> list[tuple[float, int, int]]:
        """Return of each batch event of a stage its time, its total, and how many were skipped."""
        return [
            (time, one["total"], one["skipped_messages"])
            for time, event in self.events
            if event["stage"] == stage and (one := event["payload"].get("batch"))
        ]

    def failures(self) -> list[tuple[float, str, int]]:
        """Return of each error event its time, its text and its count."""
        return [
            (time, event["payload"]["error"], event["count"])
            for time, event in self.events
            if "error" in event["payload"]
        ]

    async def leave(self) -> None:
        """Read no more."""
        self._listener.close()
        await self._task


def began() -> tuple[Engine, Reading]:
    it = Engine(Clock(asyncio.get_running_loop()))
    return it, Reading(it.clock, it.observe())


def refuses(batch: list[Any]) -> list[Any]:
    raise BatchFailed(str(batch[0]))


@virtual
async def test_what_was_skipped_is_told_within_100_ms_of_the_last_pass() -> None:
    it, reading = began()
    script = [each for n in range(8) for each in (batches([n]), 0.001)]

    await run(it, pipeline("p", [reads(Told(it.clock, script))]))
    await it.clock.sleep(5)

    assert reading.batches("input") == [(0, 1, 0), (0.1, 0, 7)]
    assert reading.batches("output") == [(0, 1, 0), (0.1, 0, 7)]
    assert reading.events[-2][1]["payload"] == {
        "batch": {"messages": [], "total": 0, "skipped_messages": 7}
    }
    assert [event["seq"] for _, event in reading.events] == [1, 2, 3, 4]
    await reading.leave()


@virtual
async def test_a_pass_just_before_the_next_is_due_waits_for_that_but_not_for_long() -> None:
    it, reading = began()
    script = [batches([1]), 0.09, batches([2])]

    await run(it, pipeline("p", [reads(Told(it.clock, script))]))
    await it.clock.sleep(5)

    assert reading.batches("input") == [(0, 1, 0), (0.15, 0, 1)]
    await reading.leave()


@virtual
async def test_while_passes_go_on_each_event_shows_one() -> None:
    it, reading = began()
    script = [each for n in range(100) for each in (batches([n]), 0.01)]

    await run(it, pipeline("p", [reads(Told(it.clock, script))]))
    await it.clock.sleep(5)

    *shown, last = reading.batches("input")
    assert [total for _, total, _ in shown] == [1] * len(shown)
    assert last[1] == 0
    assert sum(total + skipped for _, total, skipped in (*shown, last)) == 100
    await reading.leave()


@virtual
async def test_what_is_left_to_tell_of_a_pipeline_is_told_when_it_ends() -> None:
    it, reading = began()
    script = [batches(["no"], ["no"], ["no"])]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [does(refuses)]))

    await it.dispose("p")
    await it.clock.sleep(0.001)

    assert sum(total + skipped for _, total, skipped in reading.batches("input")) == 3
    assert [(text, count) for _, text, count in reading.failures()] == [("no", 1), ("no", 2)]
    assert it.clock.monotonic() < 0.01
    await reading.leave()


@virtual
async def test_counts_of_error_events_add_up_to_the_failures() -> None:
    it, reading = began()
    script = [batches(*[["no"]] * 8), 0.3, batches(*[["no"]] * 2), 5.0, batches(["no"])]

    await run(it, pipeline("p", [reads(Told(it.clock, script))], [does(refuses)]))
    await it.clock.sleep(10)

    assert reading.failures() == [
        (0, "no", 1),
        (0.25, "no", 7),
        (0.5, "no", 2),
        (5.3, "no", 1),
    ]
    events = [event for _, event in reading.events]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {tuple(event) for event in events if "count" in event} == {
        ("pipeline_id", "stage", "ts", "seq", "component", "payload", "count")
    }
    await reading.leave()


@virtual
async def test_a_failure_of_an_input_tells_which_unless_it_is_told_of_several() -> None:
    it, reading = began()
    lost = Unreachable("gone")
    scripts: list[list[Any]] = [[lost, 3, lost], [0.001, lost], [0.002, lost]]

    await run(it, pipeline("p", [reads(Told(it.clock, each)) for each in scripts]))
    await it.clock.sleep(5)

    told = [event for _, event in reading.events if "error" in event["payload"]]
    assert {each["component"] for each in told} == {None}
    assert [(each["count"], each.get("input_index")) for each in told] == [
        (1, 0),
        (2, None),
        (1, 0),
    ]
    await reading.leave()


@virtual
async def test_failures_of_several_causes_are_told_apart() -> None:
    it, reading = began()
    script = [batches(*[[cause] for _ in range(7) for cause in ("a", "b", "c")][:20])]

    await run(it, pipeline("p", [reads(Told(it.clock, script))], [does(refuses)]))
    await it.clock.sleep(1)

    told = Counter[str]()
    for _, text, count in reading.failures():
        told[text] += count
    assert told == {"a": 7, "b": 7, "c": 6}
    assert [time for time, _, _ in reading.failures()] == [0, 0, 0, 0.25, 0.25, 0.25]
    await reading.leave()


@virtual
async def test_a_new_listener_is_told_of_no_failure_before_it() -> None:
    it, reading = began()
    script = [batches(["no"], ["no"]), 0.1, batches(["no"])]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [does(refuses)]))

    await reading.leave()
    late = Reading(it.clock, it.observe())
    await it.clock.sleep(5)

    assert [(text, count) for _, text, count in late.failures()] == [("no", 1)]
    assert late.batches("input") == [(0.1, 1, 0)]
    await late.leave()


@virtual
async def test_an_event_that_cannot_be_rendered_is_called_fault() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    listener = it.observe()

    await run(it, pipeline("p", [reads(Told(it.clock, [batches([10**5000])]))]))

    told = await anext(aiter(listener))
    assert isinstance(told, Run)
    assert [event.name for event in told.events] == ["fault", "fault"]
    assert json.loads(told.events[0].data).startswith("pipeline 'p' input: ValueError: ")
    listener.close()


LARGE = {
    "strings": ["é" * 300_000] * 150,
    "lists": [[{"a": [1, 2]}] * 20_000] * 150,
    "one": [{"k": ["x" * 5000] * 1000, "n": 1}],
    "ordinary": [{"n": n, "s": "é" * 1500} for n in range(150)],
}


@pytest.mark.parametrize("batch", LARGE.values(), ids=LARGE)
@virtual
async def test_a_preview_cuts_messages_in_number_and_in_bytes_at_a_character(
    batch: list[Any],
) -> None:
    it, reading = began()

    await run(it, pipeline("p", [reads(Told(it.clock, [batches(batch)]))]))
    await it.clock.sleep(5)

    shown = [cut(encode(message).decode()) for message in batch[:100]]
    assert [event["payload"]["batch"] for _, event in reading.events] == 2 * [
        {"messages": shown, "total": len(batch), "skipped_messages": 0}
    ]
    await reading.leave()


@virtual
async def test_what_comes_while_large_messages_are_shown_is_told_after_them() -> None:
    it, reading = began()
    large = [["x" * 9999] * 1000]
    script = [batches(large), batches([1])]

    await run(it, pipeline("p", [reads(Told(it.clock, script))], [does(refuses)]))
    await it.clock.sleep(5)

    kinds = [(event["stage"], event["seq"]) for _, event in reading.events]
    assert kinds[:2] == [("input", 1), ("transform", 2)]
    assert [seq for _, seq in kinds] == [*range(1, len(kinds) + 1)]
    assert sum(count for _, _, count in reading.failures()) == 2
    await reading.leave()


@virtual
async def test_others_have_their_turns_while_large_messages_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    monkeypatch.setattr(watch, "beginning", lambda _, most: made.append(turns) or b"1")  # type: ignore[func-returns-value]
    feed, turns = Feed(TickingClock()), 0
    it = Watch("p", feed, Counters())
    feed.join(it)
    listener = feed.observe()

    it.entered(["x" * 600_000] * 100)
    while listener.channel.end == 0:
        await asyncio.sleep(0)
        turns += 1

    assert len(made) == 100
    assert max(Counter(made).values()) <= 3
    listener.close()


@virtual
async def test_nobody_is_shown_what_they_left_before() -> None:
    feed = Feed(Clock(asyncio.get_running_loop()))
    it = Watch("p", feed, Counters())
    feed.join(it)
    listener = feed.observe()

    it.entered(["x" * 600_000] * 100)
    listener.close()
    later = feed.observe()
    await feed.clock.sleep(1)

    assert later.channel.end == 0
    later.close()
