"""Who listens is told of what they have an interest in, and nothing else is rendered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring import watch
from headrace.compiler.runtime.monitoring.feed import Feed, Listener
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest, Lagged, Run
from tests.stand_ins import Told, batches, does, pipeline, reads, run
from tests.virtual import virtual

MIB = 1024 * 1024
NOBODY = frozenset[str]()


def fails(batch: list[Any]) -> list[Any]:
    if "bad" in batch:
        raise BatchFailed("it is bad")
    return [batch]


async def started(*ids: str, script: list[Any]) -> Engine:
    """Return an engine with pipelines that read the same."""
    it = Engine(Clock(asyncio.get_running_loop()))
    for id in ids:
        await run(it, pipeline(id, [reads(Told(it.clock, script))], [does(fails)]))
    return it


async def told(listener: Listener, clock: Clock) -> list[Event | Lagged]:
    """Return what a listener is told within a second, and leave."""
    seen = list[Event | Lagged]()

    async def read() -> None:
        async for each in listener:
            seen.extend(each.events if isinstance(each, Run) else [each])

    reading = asyncio.ensure_future(read())
    await clock.sleep(1)
    listener.close()
    await reading
    return seen


def shown(events: list[Event | Lagged]) -> list[tuple[str, str, Any]]:
    """Return of each event its pipeline, its stage, and its messages or its error."""
    read = [json.loads(each.data) for each in events if isinstance(each, Event)]
    return [
        (
            each["pipeline_id"],
            each["stage"],
            each["payload"]["batch"]["messages"]
            if "batch" in each["payload"]
            else each["payload"]["error"],
        )
        for each in read
    ]


@virtual
async def test_batches_are_those_of_the_pipelines_that_are_named() -> None:
    it = await started("a", "b", "c", script=[0.1, batches([1])])
    interest = Interest(batches=frozenset({"a", "c", "nobody"}), failures=NOBODY)

    seen = shown(await told(it.observe(interest), it.clock))

    assert [(id, stage) for id, stage, _ in seen] == [
        ("a", "input"),
        ("a", "output"),
        ("c", "input"),
        ("c", "output"),
    ]
    await it.close()


@virtual
async def test_without_batches_none_is_rendered_and_failures_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "encode", encoding := Encoding())
    it = await started("a", script=[0.1, batches([1]), batches(["bad"]), batches(["bad"])])
    a = it.graph.pipelines["a"]

    listener = it.observe(Interest(batches=NOBODY))
    assert not a.watch.is_due
    assert not a.watch.sees_output

    assert shown(await told(listener, it.clock)) == [("a", "transform", "it is bad")] * 2
    assert encoding.of == ["error", "error"]
    await it.close()


class Encoding:
    """Notes what is rendered."""

    def __init__(self) -> None:
        self.of: list[str] = []

    def __call__(self, value: Any) -> bytes:
        self.of += value["payload"] if isinstance(value, dict) else ["message"]
        return json.dumps(value).encode()


@virtual
async def test_failures_are_those_of_the_pipelines_that_are_named() -> None:
    it = await started("a", "b", script=[0.1, batches(["bad"])])
    interest = Interest(batches=NOBODY, failures=frozenset({"b"}))

    assert shown(await told(it.observe(interest), it.clock)) == [("b", "transform", "it is bad")]
    await it.close()


@virtual
async def test_each_listener_is_shown_as_many_messages_as_it_wants() -> None:
    it = await started("a", script=[0.1, batches([*range(200)])])
    listeners = [it.observe(Interest(messages=most)) for most in (0, 3)] + [it.observe()]

    seen = await asyncio.gather(*(told(each, it.clock) for each in listeners))

    assert [[len(messages) for _, _, messages in shown(each)] for each in seen] == [
        [0, 0],
        [3, 3],
        [100, 100],
    ]
    payloads = [json.loads(each.data) for some in seen for each in some if isinstance(each, Event)]
    assert {each["payload"]["batch"]["total"] for each in payloads} == {200}
    assert [each["seq"] for each in payloads] == [1, 2] * 3
    await it.close()


@virtual
async def test_who_comes_for_other_pipelines_changes_nothing_for_those_who_are_there() -> None:
    script = [each for n in range(20) for each in (0.03, batches([n]))]
    it = await started("a", "b", script=script)
    alone = it.observe(Interest(batches=frozenset({"a"}), failures=NOBODY))
    reading = asyncio.ensure_future(told(alone, it.clock))
    await it.clock.sleep(0.25)

    it.observe(Interest(batches=frozenset({"b"}))).close()

    read = [json.loads(each.data) for each in await reading if isinstance(each, Event)]
    inputs = [each["payload"]["batch"] for each in read if each["stage"] == "input"]
    assert sum(each["total"] + each["skipped_messages"] for each in inputs) == 20
    await it.close()


@virtual
async def test_only_what_a_listener_wanted_can_be_missed() -> None:
    feed = Feed(Clock(asyncio.get_running_loop()))
    changes, batches = feed.observe(Interest(changes=True)), feed.observe()

    for _ in range(5):
        feed.publish(Event(b" " * 3 * MIB), [batches.channel])
    feed.publish_change(Event(b"{}", "changed"))

    assert await told(changes, feed.clock) == [Event(b"{}", "changed")]
    assert (await told(batches, feed.clock))[0] == Lagged(3)


@virtual
async def test_nothing_is_kept_for_an_interest_that_nobody_has_any_more() -> None:
    feed = Feed(Clock(asyncio.get_running_loop()))
    interest = Interest(changes=True)
    first, second = feed.observe(interest), feed.observe(interest)

    feed.publish_change(Event(b" " * 7 * MIB, "changed"))
    first.close()
    first.close()
    assert second.channel.end == 1
    second.close()
    last = feed.observe(interest)
    feed.publish_change(Event(b" " * 7 * MIB, "changed"))

    assert len(await told(last, feed.clock)) == 1
