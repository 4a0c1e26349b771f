"""A connection at a stop, a deletion and the end of the server; and what an input can have go."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Input
from headrace.compiler.component.inputbuffers import Either, Static, Tumbling
from headrace.compiler.edges import Source
from headrace.compiler.errors import Ended, Refused, Unreachable
from headrace.connectors.network.arrivals import Arrivals
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.connected import GONE, Broker, of
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    Slow,
    engine,
    pipeline,
    run,
    running,
    takes,
    with_attribute,
)


@promise("delivery.case.stopped")
@pytest.mark.parametrize("ack", ["on_receipt", "on_delivery"])
def test_a_stop_keeps_the_connection_until_everything_has_left_the_outputs(ack):
    async def main():
        it = engine()
        source, slow = Broker(it.clock), Slow(it.clock, 0.5)
        await it.compile(of(source, slow, ack=ack))
        source.send(b"1", b"2", b"3")
        await it.clock.sleep(0.001)

        await it.dispose("p")

        assert (slow.batches, slow.finished) == ([[1], [2], [3]], 1)
        assert sorted(source.log[1:-2]) == [f"acknowledges {n}" for n in range(3)] + ["stops"]
        assert source.log[-2:] == ["closes", "forgets"]

    run_virtual(main)


@promise("delivery.case.stopped")
def test_what_a_buffer_holds_at_a_stop_is_acknowledged_before_the_connection_goes():
    async def main():
        it = engine()
        source, kept = Broker(it.clock), Kept()
        await it.compile(of(source, kept, transforms=[Buffer(size=100)], ack="on_delivery"))
        source.send(b"1", b"2")
        await it.clock.sleep(0.001)
        assert source.log == ["connects"]

        await it.close()

        assert kept.batches == [[1, 2]]
        assert source.log == ["connects", "stops", "acknowledges 0", "acknowledges 1", "closes"]

    run_virtual(main)


@promise("delivery.case.hangs")
def test_what_is_not_out_in_time_is_never_acknowledged_and_the_connection_goes_all_the_same():
    async def main():
        it = engine()
        source, stuck = Broker(it.clock), Slow(it.clock, 1e9)
        await it.compile(of(source, stuck, ack="on_delivery"))
        source.send(*[b"1"] * 40)
        await it.clock.sleep(0.001)

        began = it.clock.monotonic()
        await it.dispose("p")

        assert it.clock.monotonic() - began <= 5
        assert source.log == ["connects", "stops", "closes", "forgets"]

    run_virtual(main)


@pytest.mark.parametrize("faults", [[GONE] * 9, [1e9] * 9], ids=["in a pause", "connecting"])
def test_a_stop_does_not_wait_for_a_connection(faults):
    async def main():
        it = engine()
        source = Broker(it.clock, *faults)
        await it.compile(of(source))
        await it.clock.sleep(3)
        began = it.clock.monotonic()

        await it.dispose("p")

        assert it.clock.monotonic() == began
        assert source.log[-3:-1] in (["closes", "stops"], ["stops", "closes"])

    run_virtual(main)


def test_a_failed_pipeline_that_is_deleted_is_forgotten_as_well():
    async def main():
        it = engine()
        source = Broker(it.clock)
        await it.compile(of(source))
        source.lose(Ended("gone for good"))
        await it.clock.sleep(1)
        assert running(it, "p").status == "failed"

        await it.dispose("p")

        assert source.log == ["connects", "closes", "forgets"]

    run_virtual(main)


def test_whoever_cannot_be_asked_to_forget_holds_up_no_deletion(caplog):
    class Deaf(Broker):
        async def forget(self):
            await self._clock.sleep(1e9)

    async def main():
        it = engine()
        await it.compile(of(Deaf(it.clock)))
        began = it.clock.monotonic()

        await it.dispose("p")

        assert it.clock.monotonic() - began <= 1

    run_virtual(main)
    assert "a broker may keep what it had for it: it does not answer" in caplog.text


def test_an_end_of_the_server_forgets_nothing():
    async def main():
        it = engine()
        source = Broker(it.clock)
        await it.compile(of(source))

        await it.close()

        assert source.log == ["connects", "stops", "closes"]

    run_virtual(main)


class Releasing(Input, kind="releasing"):
    """An input whose broker waits for messages that are held: it has them released."""

    def source(self, ctx: Context) -> Source:
        self.made.ctx = ctx  # type: ignore[attr-defined]
        return self.made  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("buffer", "transforms"),
    [
        (Static(size=10), ()),
        (None, [Buffer(size=10)]),
        (Static(size=10), [Buffer(size=20), Buffer(size=30)]),
    ],
    ids=["static", "buffer", "one after the other"],
)
def test_an_input_can_have_go_what_waits_for_a_number_alone(buffer, transforms):
    async def main():
        it = engine()
        source, kept = Broker(it.clock), Kept()
        input = with_attribute(Releasing(buffer=buffer), "made", source)
        await run(it, pipeline("p", [input], transforms, [takes(kept)]))
        source.send(b"1", b"2")
        await it.clock.sleep(0.001)
        assert kept.batches == []

        assert source.ctx.release() >= 2

        assert kept.batches == [[1, 2]]
        assert source.ctx.release() == 0
        await it.close()

    run_virtual(main)


@pytest.mark.parametrize(
    ("buffer", "transforms"),
    [
        (Tumbling(window_seconds=10), ()),
        (Either(size=5, window_seconds=10), ()),
        (None, [Buffer(seconds=10, max_messages=5)]),
        (None, [Buffer(size=5, seconds=10)]),
        (Static(size=5), [Buffer(seconds=10, max_messages=5)]),
    ],
    ids=["tumbling", "batch", "buffer", "buffer with a size", "behind one that lets go"],
)
def test_an_input_cannot_have_go_what_waits_for_a_time(buffer, transforms):
    async def main():
        it = engine()
        source, kept = Broker(it.clock), Kept(it.clock)
        input = with_attribute(Releasing(buffer=buffer), "made", source)
        await run(it, pipeline("p", [input], transforms, [takes(kept)]))
        source.send(b"1", b"2")
        await it.clock.sleep(0.001)
        came = it.clock.monotonic()

        source.ctx.release()

        assert kept.batches == []
        assert source.ctx.held() == 2
        await it.clock.sleep(20)
        assert kept.batches == [[1, 2]]
        assert kept.times[0] - came == pytest.approx(10, abs=0.01)
        await it.close()

    run_virtual(main)


def test_what_one_component_has_claimed_no_other_gets_until_its_pipeline_has_ended():
    class Claiming(Input, kind="claiming"):
        def source(self, ctx: Context) -> Source:
            ctx.claim("the client id 'x' at 127.0.0.1:1883")
            return Broker(ctx.clock)

    async def main():
        it = engine()
        await it.compile(pipeline("first", [Claiming()]))

        with pytest.raises(Refused, match=r"'x' at .* is taken by 'first' inputs"):
            await it.compile(pipeline("second", [Claiming()]))
        await it.dispose("first")
        await it.compile(pipeline("second", [Claiming()]))
        await it.close()

    run_virtual(main)


def test_arrivals_wait_up_to_a_bound_and_a_cause_comes_after_them():
    async def main():
        arrivals = Arrivals(2)
        taking = asyncio.ensure_future(arrivals.take())
        assert [arrivals.put((b"1", None)), arrivals.put((b"2", None))] == [True, True]
        assert arrivals.put((b"3", None)) is False
        arrivals.break_off(GONE)

        assert [payload for payload, _ in await taking] == [b"1", b"2"]
        with pytest.raises(Unreachable):
            await arrivals.take()

    run_virtual(main)
