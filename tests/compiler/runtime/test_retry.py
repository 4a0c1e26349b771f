"""Outputs that bridge outages, in virtual time: what is written when, in which order, and what is told."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Transform
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest
from headrace.compiler.runtime.monitoring.pipelinelive import live_of
from tests.compiler.runtime.bridged import Disk, Run, Server, away, hear, lost, retry
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

    # Several that are begun together end together: which of them first is nothing to rely on.
    assert server.begun[-10:] == [*range(10)]
    assert sorted(server.messages) == [*range(10)]
    await it.engine.close()


@virtual
async def test_when_an_outage_is_over_as_many_are_under_way_as_before() -> None:
    it = Run()
    server = Server(it.clock, away(1, 1.5), at_once=4)
    await it.start(server, 200, every=0.05)
    await it.clock.sleep(12)

    # Twenty a second come, and of one at a time ten would be written.
    assert len(server.messages) == 200
    await it.engine.close()


@virtual
async def test_whatever_fails_first_they_are_written_in_their_order() -> None:
    it = Run()
    server = Server(
        it.clock, away(0, 3), at_once=4, seconds=lambda batch: 1.5 if batch[0] < 3 else 0.1
    )
    await it.start(server, 10, every=0.01)
    await it.clock.sleep(30)

    assert server.begun[:4] == [0, 1, 2, 3]  # which failed, the last of them first
    written = server.begun[server.begun.index(4) - 4 :]
    assert written == [*range(10)]
    assert sorted(server.messages) == [*range(10)]
    await it.engine.close()


@virtual
async def test_after_the_seconds_each_batch_is_tried_once_and_the_first_that_works_goes_on() -> (
    None
):
    it = Run()
    server = Server(it.clock, away(0, 40))
    of = await it.start(server, 60, retry=retry(5))
    await it.clock.sleep(100)

    first = server.messages[0]
    assert server.messages == [*range(first, 60)]
    assert first <= 41
    assert lost(of) == {"batch": first}
    assert of.parts.writers[0].link(it.clock.millis()).state == "up"
    await it.engine.close()


@virtual
async def test_while_somebody_has_to_act_the_seconds_do_not_run() -> None:
    it = Run()
    gone = BatchFailed('relation "t" does not exist', "misconfigured")

    def says(at: float, batch: Batch) -> Exception | None:
        if at < 600:
            return gone
        return Unreachable("starting up") if at < 640 else None

    server = Server(it.clock, says)
    of = await it.start(server, 5, retry=retry(100))
    await it.clock.sleep(900)

    assert server.messages == [*range(5)]
    assert lost(of) == {}
    await it.engine.close()


@virtual
async def test_an_answer_about_the_content_ends_an_outage() -> None:
    it = Run()

    def says(at: float, batch: Batch) -> Exception | None:
        return Unreachable("away") if at < 3 else BatchFailed("POST: 422", is_answered=True)

    server = Server(it.clock, says)
    of = await it.start(server, 1)
    await it.clock.sleep(30)

    assert lost(of) == {"batch": 1}
    assert of.parts.outages[0].waits_for is None
    assert of.parts.writers[0].link(it.clock.millis()).state == "up"
    await it.engine.close()


@promise("delivery.retry.done")
@virtual
async def test_of_what_is_cut_off_by_a_stop_only_the_rest_is_lost() -> None:
    it = Run()
    cause = Unreachable("the broker has confirmed 3 of 4", done=[0, 1, 3])
    server = Server(it.clock, lambda at, batch: cause if len(batch) == 4 else Unreachable("away"))
    of = await it.start(server, 1, size=4)
    await it.clock.sleep(10)
    await it.engine.close()

    assert server.messages == [0, 1, 3]
    assert lost(of) == {"stopped": 1}
    assert of.failures.table.latest()[0].failure == "unavailable"


class AsADriverSays(Unreachable):
    """An error of a connector that is made of more than a text."""

    def __init__(self, text: str, *, port: int) -> None:
        super().__init__(text, "unclear", done=[0])
        self.port = port


@virtual
async def test_errors_of_connectors_may_be_made_of_anything() -> None:
    it = Run()
    server = Server(it.clock, away(0, 10, AsADriverSays("cut off", port=1)))
    of = await it.start(server, 1, size=3)
    await it.clock.sleep(60)

    assert sorted(server.messages) == [0, 1, 2]
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
    assert live_of(running(it.engine, "p")).health == "degraded"
    await it.clock.sleep(60)

    assert kept.batches == [[f"{n} answered"] for n in range(4)]
    assert lost(running(it.engine, "p")) == {}
    await it.engine.close()


@virtual
async def test_a_pipeline_that_ends_waits_no_longer() -> None:
    it = Run()
    heard = list[Event]()
    listener = it.engine.observe(Interest(named=frozenset({"waiting", "going-on"})))
    hearing = asyncio.ensure_future(hear(listener, heard))
    of = await it.start(Server(it.clock, away(0, 1e9)), 1)
    await it.clock.sleep(30)
    assert live_of(of).health == "degraded"
    await it.engine.dispose("p")
    await it.clock.sleep(1)

    assert [each.name for each in heard if each.name] == ["waiting", "going-on"]
    await it.engine.close()
    await hearing


class Bridging(Transform, kind="bridging"):
    """A transform that asks somebody, and bridges outages."""

    def operator(self, ctx: Context) -> Operator:
        return ctx.lift_awaiting(self.does, RetryOptions())  # type: ignore[attr-defined]


@virtual
async def test_of_several_that_somebody_has_to_act_for_the_rest_follows_the_first_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Run()
    cause = BatchFailed("no such topic", "misconfigured")
    server = Server(it.clock, away(0, 10, cause), at_once=4)
    with caplog.at_level(logging.ERROR, "headrace"):
        await it.start(server, 4, every=0.01)
        await it.clock.sleep(60)

    assert sorted(server.messages) == [*range(4)]
    assert server.begun[-4:] == [*range(4)]
    assert len(server.tries) == 8
    assert server.tries[-1] - server.tries[4] <= 0.5
    assert len(caplog.records) == 1
    await it.engine.close()
