"""The pulse: each second what has changed, made once for all who listen, and not while nobody does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.feed import Listener
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest, Run
from tests.compiler.runtime.connected import GONE, Broker, of
from tests.doubles import TickingClock
from tests.stand_ins import Told, batches, pipeline, reads, run
from tests.virtual import virtual

NOTHING_ELSE = Interest(batches=frozenset(), failures=frozenset())


class Reading:
    """Reads pulses, with the second in which each came."""

    def __init__(self, it: Engine) -> None:
        self._clock = it.clock
        self._began = it.clock.monotonic()
        self.listener: Listener = it.observe(NOTHING_ELSE, pulse=True)
        self.told: list[tuple[float, Any]] = []
        self.runs: list[Run] = []
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for told in self.listener:
            assert isinstance(told, Run)
            self.runs.append(told)
            [event] = told.events
            assert event.name == "pulse"
            at = round(self._clock.monotonic() - self._began, 2)
            self.told.append((at, json.loads(event.data)))

    def ids(self) -> list[tuple[float, list[str]]]:
        return [(at, [*pulse["pipelines"]]) for at, pulse in self.told]

    async def leave(self) -> None:
        self.listener.close()
        await self._task


def counted(reading: Reading, id: str) -> list[tuple[int, int]]:
    """Return what was told of the messages of a pipeline, in and out."""
    each = [pulse["pipelines"].get(id) for _, pulse in reading.told]
    return [(one["in"], one["out"]) for one in each if one is not None]


@virtual
async def test_the_first_tells_of_all_pipelines_and_later_ones_of_those_that_changed() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    await run(it, pipeline("quiet", [reads(Told(it.clock, []))]))
    script = [0.5, batches([1, 2]), 2.0, batches([3]), batches([4])]
    await run(it, pipeline("busy", [reads(Told(it.clock, script))]))

    reading = Reading(it)
    await it.clock.sleep(4.5)

    assert reading.ids() == [
        (0, ["quiet", "busy"]),
        (1, ["busy"]),
        (2, []),
        (3, ["busy"]),
        (4, []),
    ]
    assert counted(reading, "busy") == [(0, 0), (2, 2), (4, 4)]
    assert reading.told[0][1]["pipelines"]["quiet"] == {
        "in": 0,
        "out": 0,
        "skipped": 0,
        "failed": 0,
        "held": 0,
        "in_flight": 0,
        "status": "running",
        "health": "ok",
        "started_at": 1767225600000,
    }
    await reading.leave()
    await it.close()


@virtual
async def test_all_who_listen_are_told_the_same_and_who_comes_later_of_all_at_once() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    await run(it, pipeline("quiet", [reads(Told(it.clock, []))]))
    first = Reading(it)
    await it.clock.sleep(1.25)

    second = Reading(it)
    await it.clock.sleep(1)

    assert second.ids() == [(0, ["quiet"]), (0.75, [])]
    assert first.runs[-1] is second.runs[-1]
    assert len(first.runs) == 3
    await first.leave()
    await second.leave()
    await it.close()


@virtual
async def test_who_has_missed_one_is_told_of_all_pipelines() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    for id in ("a", "b"):
        script = [0.5, batches([1])] if id == "a" else []
        await run(it, pipeline(id, [reads(Told(it.clock, script))]))
    told = aiter(it.observe(NOTHING_ELSE, pulse=True))
    await anext(told)

    await it.clock.sleep(2.5)
    [event] = (await anext(told)).events  # type: ignore[union-attr]

    pulse = json.loads(event.data)
    assert {id: each["in"] for id, each in pulse["pipelines"].items()} == {"a": 1, "b": 0}
    it.hush()
    await it.close()


@virtual
async def test_a_pipeline_that_has_gone_is_told_and_one_created_again_begins_anew() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    for id in ("a", "b"):
        await run(it, pipeline(id, [reads(Told(it.clock, [batches([1])]))]))
    reading = Reading(it)
    await it.clock.sleep(0.5)

    await it.dispose("a")
    await it.dispose("b")
    await run(it, pipeline("b", [reads(Told(it.clock, []))]))
    await it.clock.sleep(2)

    pulses = [pulse for _, pulse in reading.told]
    assert [pulse.get("gone") for pulse in pulses] == [None, ["a"], None]
    before, after = (pulse["pipelines"]["b"] for pulse in pulses[:2])
    assert (before["in"], after["in"]) == (1, 0)
    assert after["started_at"] >= before["started_at"] + 500
    await reading.leave()
    await it.close()


@virtual
async def test_it_tells_that_an_input_is_not_connected_until_it_is() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    await it.compile(of(Broker(it.clock, *[GONE] * 3)))
    reading = Reading(it)

    await it.clock.sleep(4.5)

    each = [pulse["pipelines"].get("p") for _, pulse in reading.told]
    health = [(one["health"], one["status"]) for one in each if one is not None]
    assert (health[0], health[-1]) == (("degraded", "running"), ("ok", "running"))
    await reading.leave()
    await it.close()


@virtual
async def test_nothing_is_made_while_nobody_listens() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    await run(it, pipeline("p", [reads(Told(it.clock, []))]))
    looked: list[Any] = []
    it._pulses._look, look = lambda each: looked.append(1) or look(each), it._pulses._look  # type: ignore[func-returns-value]
    other = it.observe()
    await it.clock.sleep(3)
    assert looked == []

    reading = Reading(it)
    await it.clock.sleep(2.5)
    await reading.leave()
    seen = len(looked)
    await it.clock.sleep(3)

    assert (seen, len(looked)) == (3, 3)
    assert it._pulses._entries == {}
    other.close()
    await it.close()


@virtual
async def test_who_listens_to_no_pulse_is_told_of_none() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    reading = Reading(it)
    plain, seen = it.observe(), list[Event]()

    async def read() -> None:
        async for told in plain:
            assert isinstance(told, Run)
            seen.extend(told.events)

    task = asyncio.ensure_future(read())
    await it.clock.sleep(2.5)
    plain.close()
    await task

    assert seen == []
    assert len(reading.told) == 3
    await reading.leave()
    await it.close()


@virtual
async def test_others_have_their_turns_while_many_pipelines_are_looked_at() -> None:
    it = Engine(TickingClock())
    for number in range(5):
        await run(it, pipeline(f"p{number}", [reads(Told(it.clock, []))]))
    turns, looked = 0, list[int]()
    it._pulses._look, look = lambda each: looked.append(turns) or look(each), it._pulses._look  # type: ignore[func-returns-value]

    reading = Reading(it)
    while not it._pulses.number:
        await asyncio.sleep(0)
        turns += 1

    assert len(looked) == 5
    assert max(looked.count(turn) for turn in looked) <= 2
    [event] = it._pulses.since(0).events
    assert len(json.loads(event.data)["pipelines"]) == 5
    await reading.leave()
    await it.close()
