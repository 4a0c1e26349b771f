"""Outputs that bridge outages, in virtual time: what is written when, in which order, and what is told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Transform
from headrace.compiler.component.retry import Retrying, RetryOptions
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, InlineSink, Sink
from headrace.compiler.errors import BatchFailed, NotWritable, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest
from headrace.compiler.runtime.pipeline import Pipeline
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    Told,
    batches,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)
from tests.virtual import virtual

Says = Callable[[float, Batch], Exception | None]
"""Returns why a batch cannot be written at a time since the start, or None."""


def away(since: float, until: float, cause: Exception | None = None) -> Says:
    """Return a server that is not there for a while."""

    def says(at: float, batch: Batch) -> Exception | None:
        return (cause or Unreachable("db:1 does not answer")) if since <= at < until else None

    return says


def retry(seconds: float) -> Retrying:
    """Return the option with a bound."""
    return RetryOptions.load({"seconds": seconds})


class Server(AwaitingSink):
    """Takes what it does not refuse, each batch in a tenth of a second; keeps when."""

    def __init__(self, clock: Clock, says: Says, at_once: int = 1) -> None:
        self._clock, self._says, self.at_once = clock, says, at_once
        self._began = clock.monotonic()
        self.messages: list[Any] = []
        self.tries: list[float] = []

    async def write(self, batch: Batch) -> None:
        at = self._clock.monotonic() - self._began
        self.tries.append(round(at, 1))
        await self._clock.sleep(0.1)
        if (cause := self._says(at, batch)) is not None:
            if isinstance(cause, BatchFailed):
                self.messages += [batch[place] for place in cause.done]
            raise cause
        self.messages += batch


class Disk(InlineSink):
    """Is full for a while."""

    def __init__(self, clock: Clock, until: float) -> None:
        self._clock, self._until = clock, clock.monotonic() + until
        self.messages: list[Any] = []

    def write(self, batch: Batch) -> None:
        if self._clock.monotonic() < self._until:
            raise NotWritable("the disk is full")
        self.messages += batch


class Run:
    """A pipeline that is handed a batch each second and writes to a sink with `retry`."""

    def __init__(self) -> None:
        self.engine = Engine(Clock(asyncio.get_running_loop()))
        self.clock = self.engine.clock

    async def start(
        self, sink: Sink, count: int, *others: Sink, retry: Retrying = True, size: int = 1
    ) -> Pipeline:
        """Run it on ``count`` batches of numbers."""
        given = [batches([*range(n * size, (n + 1) * size)]) for n in range(count)]
        lines = [part for each in given for part in (1.0, each)]
        self.source = Told(self.clock, lines)
        output = with_attribute(takes(sink), "retry", retry)
        outputs = [output, *map(takes, others)]
        await run(self.engine, pipeline("p", [reads(self.source)], [], outputs))
        return running(self.engine, "p")


def lost(of: Pipeline) -> dict[str, int]:
    """Return how many messages were lost, by reason."""
    return {each.reason: each.count for each in of.failures.losses if each.count}


@promise("delivery.retry.waits")
@virtual
async def test_what_fails_in_an_outage_is_written_when_it_is_over_in_order() -> None:
    it = Run()
    server = Server(it.clock, away(2.5, 40))
    of = await it.start(server, 10)
    await it.clock.sleep(100)

    assert server.messages == [*range(10)]
    assert lost(of) == {}
    [failure] = of.failures.table.latest()
    assert (failure.failure, failure.message) == ("unavailable", "db:1 does not answer")
    assert failure.count == len(
        [at for at in server.tries if 2.5 <= at < 40]
    )  # each try is counted
    assert of.parts.writers[0].link(it.clock.millis()).state == "up"
    await it.engine.close()


@promise("delivery.retry.others")
@virtual
async def test_others_wait_after_sixteen_batches_and_get_all_of_it() -> None:
    it = Run()
    server, kept = Server(it.clock, away(0, 60)), Kept()
    await it.start(server, 40, kept)
    await it.clock.sleep(50)
    assert len(kept.batches) == 16

    await it.clock.sleep(100)
    assert [message for batch in kept.batches for message in batch] == [*range(40)]
    assert server.messages == [*range(40)]
    await it.engine.close()


@promise("delivery.retry.seconds")
@virtual
async def test_an_outage_that_lasts_longer_costs_what_fails_from_then_on_until_something_works() -> (
    None
):
    it = Run()
    server = Server(it.clock, away(0, 20))
    of = await it.start(server, 40, retry=retry(5))
    await it.clock.sleep(100)

    first = server.messages[0]
    assert server.messages == [*range(first, 40)]
    assert 10 <= first <= 22
    assert lost(of) == {"batch": first}
    await it.engine.close()


@virtual
async def test_the_seconds_are_those_of_each_outage() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return Unreachable("away") if 1 <= at % 10 < 5 else None

    server = Server(it.clock, says)
    of = await it.start(server, 40, retry=retry(8))
    await it.clock.sleep(200)

    assert server.messages == [*range(40)]
    assert lost(of) == {}
    await it.engine.close()


@promise("delivery.retry.misconfigured")
@virtual
async def test_where_somebody_has_to_act_it_waits_for_ever_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Run()
    cause = BatchFailed('relation "t" does not exist (42P01)', "misconfigured")
    server = Server(it.clock, away(0, 600, cause))
    with caplog.at_level(logging.ERROR, "headrace"):
        of = await it.start(server, 5, retry=retry(10))
        await it.clock.sleep(500)
        assert of.parts.outages[0].waits_for == "misconfigured"
        assert of.parts.writers[0].link(it.clock.millis()).state == "down"
        await it.clock.sleep(200)

    assert server.messages == [*range(5)]
    assert lost(of) == {}
    between = [
        after - before for before, after in zip(server.tries, server.tries[1:], strict=False)
    ]
    assert all(24 <= each <= 37 for each in between[:-5])
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "pipeline 'p' outputs[0]: waits until somebody acts: relation \"t\" does not exist (42P01)"
    ]
    await it.engine.close()


@promise("delivery.retry.invalid")
@virtual
async def test_what_is_about_the_content_costs_its_batch_as_without() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return BatchFailed("too large") if 3 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 6)
    await it.clock.sleep(20)

    assert server.messages == [0, 1, 2, 4, 5]
    assert lost(of) == {"batch": 1}
    assert len(server.tries) == 6
    await it.engine.close()


@promise("delivery.retry.done")
@virtual
async def test_only_what_was_not_written_is_sent_again() -> None:
    it, failed = Run(), list[bool]()

    def says(at: float, batch: Batch) -> Exception | None:
        if failed:
            return None
        failed.append(True)
        return Unreachable("the broker has confirmed 2 of 4", done=[0, 2])

    server = Server(it.clock, says)
    await it.start(server, 1, size=4)
    await it.clock.sleep(10)

    assert server.messages == [0, 2, 1, 3]
    await it.engine.close()


@virtual
async def test_a_full_disk_is_waited_for() -> None:
    it = Run()
    disk = Disk(it.clock, until=30)
    of = await it.start(disk, 10)
    await it.clock.sleep(60)

    assert disk.messages == [*range(10)]
    assert lost(of) == {}
    await it.engine.close()


@virtual
async def test_of_several_under_way_those_that_fail_are_written_in_their_order() -> None:
    it = Run()
    server = Server(it.clock, away(0, 10), at_once=4)
    await it.start(server, 10)
    await it.clock.sleep(60)

    assert server.messages == [*range(10)]
    await it.engine.close()


@promise("delivery.retry.answered")
@virtual
async def test_a_message_that_the_other_side_never_takes_while_others_pass_is_at_fault() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return Unreachable("POST: 500", is_answered=True) if 13 in batch else None

    server = Server(it.clock, says)
    of = await it.start(server, 4, size=5)
    await it.clock.sleep(200)

    assert server.messages == [n for n in range(20) if n != 13]
    assert lost(of) == {"batch": 1}
    [failure] = of.failures.table.latest()
    assert failure.failure == "invalid"  # as it was last
    await it.engine.close()


@virtual
async def test_where_no_message_passes_it_is_an_outage_after_all() -> None:
    it = Run()
    cause = Unreachable("POST: 503", is_answered=True)
    server = Server(it.clock, away(0, 300, cause))
    of = await it.start(server, 4, size=5)
    await it.clock.sleep(900)

    # The batch that was taken apart when the server came back is whole, and not in its order.
    assert sorted(server.messages[:5]) == [*range(5)]
    assert server.messages[5:] == [*range(5, 20)]
    assert lost(of) == {}
    await it.engine.close()


@promise("delivery.retry.stop")
@virtual
async def test_a_stop_has_it_tried_at_once_and_what_is_left_is_lost_and_not_acknowledged() -> None:
    it = Run()
    server = Server(it.clock, away(0, 1e9))
    of = await it.start(server, 3)
    await it.clock.sleep(100)
    tries = len(server.tries)
    await it.engine.close()

    assert len(server.tries) - tries >= 5
    assert lost(of) == {"stopped": 3}


@virtual
async def test_who_listens_is_told_that_it_waits_and_that_it_goes_on() -> None:
    it = Run()
    interest = Interest(named=frozenset({"waiting", "going-on"}))
    heard = list[Event]()
    listener = it.engine.observe(interest)
    hearing = asyncio.ensure_future(hear(listener, heard))
    server = Server(it.clock, away(0, 10))
    await it.start(server, 1)
    await it.clock.sleep(30)

    told = [(each.name, json.loads(each.data)) for each in heard if each.name]
    await it.engine.close()
    await hearing
    about = {"pipeline_id": "p", "stage": "output", "component": 0}
    why = {"class": "unavailable", "why": "db:1 does not answer"}
    assert [(name, {**said, "ts": 0}) for name, said in told] == [
        ("waiting", {**about, **why, "ts": 0}),
        ("going-on", {**about, "ts": 0}),
    ]


async def hear(listener: Any, heard: list[Event]) -> None:
    async for each in listener:
        heard += getattr(each, "events", ())


@virtual
async def test_a_step_that_asks_somebody_is_tried_again_and_what_comes_behind_it_waits() -> None:
    it = Run()
    asked = list[float]()

    async def asks(batch: Batch) -> list[Batch]:
        asked.append(it.clock.monotonic())
        if it.clock.monotonic() - asked[0] < 20:
            raise Unreachable("POST: connection refused")
        return [[f"{message} answered" for message in batch]]

    kept = Kept()
    transform = with_attribute(Bridging(), "does", asks)
    given = [part for n in range(4) for part in (1.0, batches([n]))]
    source = Told(it.clock, given)
    await run(it.engine, pipeline("p", [reads(source)], [transform], [takes(kept)]))
    await it.clock.sleep(10)
    [outage] = running(it.engine, "p").parts.outages
    assert (outage.waits_for, outage.place.stage) == ("unavailable", "transform")
    await it.clock.sleep(60)

    assert kept.batches == [[f"{n} answered"] for n in range(4)]
    assert lost(running(it.engine, "p")) == {}
    await it.engine.close()


class Bridging(Transform, kind="bridging"):
    """A transform that asks somebody, and bridges outages."""

    def operator(self, ctx: Context) -> Operator:
        return ctx.lift_awaiting(self.does, RetryOptions())  # type: ignore[attr-defined]
