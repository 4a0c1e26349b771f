"""Ends of a reader whose upstream waits, and of that upstream: nothing is lost, and all is given back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.config.program import Program
from headrace.compiler.errors import BuildRefused, Refused
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.runtime.connected import Broker
from tests.compiler.runtime.durable import Gated, durable, engine_on, kept, post
from tests.compiler.runtime.test_upstream_ack import NOTHING, buffer, reader
from tests.stand_ins import does, pipeline, reads, run, running, takes
from tests.virtual import virtual


def losses(it: Pipeline) -> int:
    """Return how many messages a pipeline has lost."""
    return sum(each.count for each in it.failures.losses)


class Refusing(Gated):
    """Is turned down after two seconds."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def start(self) -> None:
        await self._clock.sleep(2)
        raise BuildRefused(Fault("turned-away", "wrong password"))


@virtual
async def test_a_reader_that_is_refused_leaves_nothing_open(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated())) as it:
        creating = asyncio.ensure_future(run(it, reader(Refusing(it.clock))))
        await it.clock.sleep(1)
        await post(it, 1)
        with pytest.raises(Refused):
            await creating
        await it.clock.sleep(5)
        assert await kept(it) == NOTHING
        assert it.graph.owing.of("p") == []


@virtual
async def test_a_reader_whose_creation_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated())) as it:
        creating = asyncio.ensure_future(run(it, reader(Refusing(it.clock))))
        await it.clock.sleep(1)
        await post(it, 1)
        creating.cancel()
        await it.clock.sleep(5)
        assert await kept(it) == NOTHING


@virtual
async def test_brokers_are_let_go_of_whole_where_a_reader_hangs(tmp_path: Path) -> None:
    source = Broker(Clock(asyncio.get_running_loop()))
    stuck, done = Gated(is_open=False), []
    upstream = pipeline(
        "p", [reads(source, acknowledges=True, ack="on_delivery")], [], [takes(Gated())]
    )
    async with engine_on(tmp_path, upstream, reader(stuck)) as it:
        p = running(it, "p")

        async def slowly() -> None:
            await it.clock.sleep(0.1)
            done.append("slow")

        async def behind() -> None:
            done.append("behind")

        p.parts.closing += [slowly, behind]
        source.send(b"1")
        await it.clock.sleep(1)
    assert source.log[-1] == "closes"
    assert done == ["slow", "behind"]


@virtual
async def test_an_upstream_is_exchanged_soon_where_a_reader_holds(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(out, buffer(size=3))) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        begun = it.clock.monotonic()
        await it.exchange("p", durable(Gated(), capacity=7), None)
        took = it.clock.monotonic() - begun
        await post(it, 2)
        await post(it, 3)
        await it.clock.sleep(10)
    assert (took < 1, out.messages) == (True, [1, 2, 3])


@virtual
async def test_a_reader_that_is_exchanged_loses_nothing_in_figures(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        old = running(it, "r")
        await it.exchange("r", reader(out, does(lambda batch: [batch])), None)
        await it.clock.sleep(1)
    assert out.messages == [*range(300)]
    assert (old.lost, losses(old)) == (0, 0)


@virtual
async def test_an_end_loses_nothing_in_figures(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        old = running(it, "r")
    async with engine_on(tmp_path) as it:
        await it.load(Program((durable(Gated()), reader(out)), {}))
        await it.clock.sleep(5)
    assert out.messages == [*range(300)]
    assert (old.lost, losses(old)) == (0, 0)


@virtual
async def test_what_nobody_keeps_is_counted_at_an_end(tmp_path: Path) -> None:
    counted = {}
    for ack in (None, "on_delivery"):
        out, stuck = Gated(), Gated(is_open=False)
        async with engine_on(
            tmp_path, durable(out, durable=None), reader(stuck, upstream_ack=ack)
        ) as it:
            for n in range(90):
                await post(it, n)
            await it.clock.sleep(1)
            old = running(it, "r")
        counted[ack] = losses(old)
    assert counted[None] == counted["on_delivery"] == 90


@virtual
async def test_what_an_exchanged_reader_does_not_want_any_more_is_not_read(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    when = [{"type": "numeric", "field": "n", "operator": "greater_than", "value": 7}]
    async with engine_on(tmp_path, durable(Gated()), reader(stuck)) as it:
        for n in range(10):
            await post(it, {"n": n})
        await it.clock.sleep(1)
        await it.exchange("r", reader(out, when=when), None)
        await it.clock.sleep(1)
    assert out.messages == [{"n": 8}, {"n": 9}]


@virtual
async def test_a_failed_reader_with_an_inbox(tmp_path: Path) -> None:
    source = Broker(Clock(asyncio.get_running_loop()))
    upstream = pipeline(
        "p", [reads(source, acknowledges=True, ack="on_delivery")], [], [takes(Gated())]
    )
    stuck = Gated(is_open=False)
    async with engine_on(tmp_path, upstream, reader(stuck)) as it:
        for n in range(30):
            source.send(b"%d" % n)
            await it.clock.sleep(0.01)
        await it.clock.sleep(1)
        r = running(it, "r")
        r._broke(RuntimeError("broken"))
        stuck.gate.set()
        await it.clock.sleep(100)
        assert r.status == "failed"
        acked = len(source.log) - 1
        await it.dispose("r")
        assert (acked, len(source.log) - 1, losses(r)) == (16, 30, 14)
