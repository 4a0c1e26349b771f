"""A reader with `upstream_ack: on_delivery`: what its upstream keeps is kept until it has written it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from reactivex import Observable

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Delivery
from headrace.compiler.edges import QueueFill
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.connected import Broker
from tests.compiler.runtime.durable import Gated, durable, engine_on, kept, post
from tests.promises import promise
from tests.stand_ins import Doing, does, pipeline, reads, run, running, takes
from tests.virtual import virtual

NOTHING = {("p", False): 0}


def reader(
    to: Gated, *transforms: Any, id: str = "r", upstream: str = "p", **options: Any
) -> PipelineConfig:
    """Return a pipeline that reads another one, which waits for it unless the options say otherwise."""
    options = {"upstream": upstream, "upstream_ack": "on_delivery"} | options
    return pipeline(id, [PipelineInput.load(options)], [*transforms], [takes(to)])


class Failing(Doing, kind="failing"):
    """An operator that raises at the first batch, which ends its pipeline."""

    def operator(self, ctx: Context) -> Operator:
        def raises(_: Delivery) -> None:
            raise MemoryError("out of memory")

        return lambda source: Observable(lambda *_: source.subscribe(raises))


def buffer(**options: Any) -> Buffer:
    """Return a transform that holds messages."""
    return Buffer.load(options)


@virtual
async def test_what_a_reader_has_not_written_is_kept(tmp_path: Path) -> None:
    out, plain, waiting = Gated(), Gated(is_open=False), Gated(is_open=False)
    configs = [durable(out), reader(plain, id="plain", upstream_ack=None), reader(waiting)]
    async with engine_on(tmp_path, *configs) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        plain.gate.set()
        before = await kept(it)
        waiting.gate.set()
        await it.clock.sleep(1)
        after = await kept(it)

    assert (before, after) == ({("p", False): 300}, NOTHING)
    assert out.messages == plain.messages == waiting.messages == [*range(300)]


@promise("pipeline.on_delivery.kill")
@virtual
async def test_what_a_reader_could_not_write_comes_again(tmp_path: Path) -> None:
    out, stuck, again, written = Gated(), Gated(is_open=False), Gated(), Gated()
    async with engine_on(tmp_path, durable(out), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
    async with engine_on(tmp_path) as it:
        await it.load(Program((durable(again), reader(written)), {}))
        await it.clock.sleep(5)
        left = await kept(it)

    assert out.messages == [*range(len(out.messages))]  # it waited for the reader
    assert again.messages == written.messages == [*range(300)]
    assert left == NOTHING


@promise("pipeline.on_delivery.twice")
@virtual
async def test_after_an_end_in_order_nothing_comes_twice(tmp_path: Path) -> None:
    first, out = Gated(), Gated()
    holding = buffer(size=1_000)
    async with engine_on(tmp_path, durable(Gated()), reader(first, holding)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        assert first.messages == []
    async with engine_on(tmp_path) as it:
        await it.load(Program((durable(Gated()), reader(out)), {}))
        await it.clock.sleep(5)

    assert first.messages == [*range(300)]
    assert out.messages == []


@virtual
async def test_of_a_chain_of_readers_the_last_is_waited_for(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    first, last = reader(Gated(), id="q"), reader(stuck, id="r", upstream="q")
    async with engine_on(tmp_path, durable(Gated()), first, last) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        assert await kept(it) == {("p", False): 1}
        stuck.gate.set()
        await it.clock.sleep(1)
        assert await kept(it) == NOTHING
        await post(it, 2)
    async with engine_on(tmp_path) as it:
        await it.load(Program((durable(Gated()), first, reader(out, id="r", upstream="q")), {}))
        await it.clock.sleep(5)

    assert stuck.messages == [1, 2]
    assert out.messages == []


@virtual
async def test_what_a_reader_does_not_want_is_not_waited_for(tmp_path: Path) -> None:
    stuck = Gated(is_open=False)
    wanting = reader(
        stuck, when=[{"type": "numeric", "field": "n", "operator": "greater_than", "value": 7}]
    )
    async with engine_on(tmp_path, durable(Gated()), wanting) as it:
        for n in range(10):
            await post(it, {"n": n})
        await it.clock.sleep(1)
        assert await kept(it) == {("p", False): 2}
        stuck.gate.set()

    assert stuck.messages == [{"n": 8}, {"n": 9}]


@virtual
async def test_what_a_deleted_reader_had_is_lost_and_counted(tmp_path: Path) -> None:
    out, stuck = Gated(), Gated(is_open=False)
    async with engine_on(tmp_path, durable(out), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        deleted = running(it, "r")
        before, handed = await kept(it), len(out.messages)
        await it.dispose("r")
        await post(it, 300)
        await it.clock.sleep(1)
        after = await kept(it)

    assert (before, after) == ({("p", False): 300}, NOTHING)
    assert sum(each.count for each in deleted.failures.losses) == handed > 100
    assert out.messages == [*range(301)]


@virtual
async def test_a_reader_that_is_exchanged_goes_on_with_what_was_not_written(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        await it.exchange("r", reader(out, does(lambda batch: [batch])), None)
        await post(it, 300)
        await it.clock.sleep(1)
        left = await kept(it)

    assert stuck.messages == []
    assert out.messages == [*range(301)]
    assert left == NOTHING


@virtual
async def test_a_deleted_upstream_waits_for_what_its_reader_can_write(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(out, buffer(size=1_000))) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        await it.dispose("p")
        left = await kept(it)
        assert out.messages == [*range(300)]

    assert left == {}


@virtual
async def test_an_upstream_that_is_exchanged_does_not_wait_for_ever(tmp_path: Path) -> None:
    stuck = Gated(is_open=False)
    async with engine_on(tmp_path, durable(Gated()), reader(stuck)) as it:
        await post(it, 1)
        await it.clock.sleep(1)
        begun = it.clock.monotonic()
        await it.exchange("p", durable(Gated(), capacity=7), None)
        took = it.clock.monotonic() - begun
        await it.clock.sleep(1)
        stuck.gate.set()
        await it.clock.sleep(1)
        left = await kept(it)

    assert took < 5
    assert stuck.messages == [1, 1]  # it was kept, and read again by the new one
    assert left == NOTHING


@virtual
async def test_a_buffer_of_a_reader_lets_go_where_its_upstream_is_full_of_what_it_holds(
    tmp_path: Path,
) -> None:
    out = Gated()
    upstream = durable(Gated(), durable={"max_bytes": 20_000})
    async with engine_on(tmp_path, upstream, reader(out, buffer(size=1_000_000))) as it:
        taken = 0
        for n in range(2_000):
            try:
                taken += await post(it, n)
            except Exception:
                await it.clock.sleep(1)
        assert taken > 1_000
        assert out.messages


@promise("pipeline.on_delivery.away")
@virtual
async def test_a_broker_is_told_when_the_reader_has_written(tmp_path: Path) -> None:
    source = Broker(Clock(asyncio.get_running_loop()))
    stuck = Gated(is_open=False)
    upstream = pipeline(
        "p", [reads(source, acknowledges=True, ack="on_delivery")], [], [takes(Gated())]
    )
    async with engine_on(tmp_path, upstream, reader(stuck)) as it:
        source.send(b"1")
        await it.clock.sleep(1)
        assert source.log == ["connects"]
        stuck.gate.set()
        await it.clock.sleep(1)
        assert source.log == ["connects", "acknowledges 0"]
        stuck.gate.clear()
        source.send(b"2")
        await it.clock.sleep(1)
        it.clock.call_later(1, stuck.gate.set)
    assert source.log[2:] == ["stops", "acknowledges 1", "closes"]
    assert stuck.messages == [1, 2]


@virtual
async def test_an_upstream_that_comes_again_is_read_on(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, durable(Gated()), reader(out)) as it:
        await post(it, 1)
        await it.dispose("p")
        await run(it, durable(Gated()))
        await post(it, 2)
        await it.clock.sleep(1)
        left = await kept(it)

    assert out.messages == [1, 2]
    assert left == NOTHING


@virtual
async def test_what_a_reader_had_that_has_failed_goes_to_the_next_in_its_place(
    tmp_path: Path,
) -> None:
    upstream, out = Gated(), Gated()
    async with engine_on(tmp_path, durable(upstream), reader(Gated(), Failing())) as it:
        for n in range(50):
            await post(it, n)
        await it.clock.sleep(10)
        failed, before = running(it, "r").status, await kept(it)
        await it.exchange("r", reader(out), None)
        await it.clock.sleep(1)
        left = await kept(it)

    assert failed == "failed"
    assert 0 < before["p", False] <= 50
    assert (
        sorted({*out.messages}) == out.messages
    )  # those that came while nobody read are not among them
    assert out.messages[0] == 0
    assert left == NOTHING


@virtual
async def test_what_a_reader_had_that_has_failed_is_let_go_of_with_it(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated()), reader(Gated(), Failing())) as it:
        for n in range(50):
            await post(it, n)
        await it.clock.sleep(10)
        before = await kept(it)
        await it.dispose("r")
        left = await kept(it)

    assert before["p", False] > 0
    assert left == NOTHING


@virtual
async def test_an_upstream_does_not_wait_for_a_reader_that_has_failed(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated()), reader(Gated(), Failing())) as it:
        await post(it, 1)
        await it.clock.sleep(10)
        begun = it.clock.monotonic()
        await it.dispose("p")
        took = it.clock.monotonic() - begun
        left = await kept(it)

    assert took < 1
    assert left == {("p", True): 1}


@promise("pipeline.on_delivery.waits", "pipeline.on_delivery.beyond")
@virtual
async def test_a_hundred_batches_wait_for_a_reader_and_beyond_that_the_upstream_does(
    tmp_path: Path,
) -> None:
    out, stuck = Gated(), Gated(is_open=False)
    async with engine_on(tmp_path, durable(out), reader(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(1)
        [inbox] = running(it, "r").parts.readers
        fill, handed = inbox.queue(), len(out.messages)
        stuck.gate.set()
        await it.clock.sleep(1)

    assert fill == QueueFill("batches", 100, 100)
    assert 100 < handed < 150
    assert stuck.messages == out.messages == [*range(300)]
