"""Inputs with a broker behind them: connected while they are built, let go of at the very end."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, Ended, Refused, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.families import Input
from headrace.compiler.language.inputbuffers import Either, Static, Tumbling
from headrace.connectors.arrivals import Arrivals
from headrace.operators.buffer import Buffer
from tests.stand_ins import (
    Kept,
    Slow,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)


class Broker(Source):
    """A source with a connection; keeps what happens to it, in order.

    ``faults`` is what becomes of one attempt to connect after the other: an error, seconds that it
    takes, or None. Payloads are those that a test sends.
    """

    connects = True

    def __init__(self, clock, *faults):
        self._clock = clock
        self._faults = list(faults)
        self._arrivals = Arrivals(1000)
        self._count = 0
        self.log = []

    def send(self, *payloads):
        for payload in payloads:
            self._arrivals.put((payload, self._count))
            self._count += 1

    def lose(self, cause):
        self._arrivals.break_off(cause)

    async def read(self):
        fault = self._faults.pop(0) if self._faults else None
        self.log.append("connects")
        try:
            if isinstance(fault, Exception):
                raise fault
            if fault is not None:
                await self._clock.sleep(fault)
            yield ()
            while True:
                yield await self._arrivals.take()
        finally:
            self._arrivals = Arrivals(1000)
            self.log.append("closes")

    def acknowledge(self, origins):
        self.log += [f"acknowledges {origin}" for origin in origins]

    def stop(self):
        self.log.append("stops")
        self._arrivals.wake()
        return False

    async def forget(self):
        self.log.append("forgets")


REFUSED = BuildRefused(Fault("turned-away", "WRONGPASS", path=("connection",)))
GONE = Unreachable("it does not answer")


def of(source, *outputs, transforms=(), **options):
    """Return a pipeline that reads a broker."""
    return pipeline(
        "p", [reads(source, acknowledges=True, **options)], transforms, [*map(takes, outputs)]
    )


def test_an_input_is_connected_when_its_pipeline_counts_as_created():
    async def main():
        it = engine()
        source, kept = Broker(it.clock, 0.5), Kept()

        await it.compile(of(source, kept))
        source.send(b"1")
        await it.clock.sleep(0.001)

        assert (source.log, kept.batches) == (["connects", "acknowledges 0"], [[1]])
        await it.close()

    run_virtual(main)


def test_an_input_that_is_turned_away_refuses_its_pipeline():
    async def main():
        it = engine()
        source, kept = Broker(it.clock, REFUSED), Kept()

        with pytest.raises(Refused, match=r"inputs\[0\]\.connection: WRONGPASS"):
            await it.compile(of(source, kept))

        assert [*it.names()] == []
        assert (source.log, kept.finished) == (["connects", "closes", "stops"], 1)

    run_virtual(main)


def test_a_broker_that_is_away_refuses_nothing_and_is_one_failure_counted():
    async def main():
        it = engine()
        source, kept = Broker(it.clock, *[GONE] * 5), Kept()

        view = await it.compile(of(source, kept))
        assert view.status == "running"
        await it.clock.sleep(10)
        source.send(b"1")
        await it.clock.sleep(0.001)

        assert kept.batches == [[1]]
        [outage] = running(it, "p").failures.signatures()
        assert (outage.stage, outage.message, outage.count) == ("input", "it does not answer", 5)
        await it.close()

    run_virtual(main)


def test_a_connect_that_takes_too_long_does_not_hold_up_the_create_and_is_tried_again():
    async def main():
        it = engine()
        source = Broker(it.clock, 1000.0)

        await it.compile(of(source))
        assert it.clock.monotonic() == 5
        await it.clock.sleep(1)

        assert source.log == ["connects", "closes", "connects"]
        await it.close()

    run_virtual(main)


def test_a_create_that_is_given_up_while_it_connects_leaves_nothing_behind(caplog):
    async def main():
        it = engine()
        source = Broker(it.clock, 1000.0)
        creating = asyncio.ensure_future(it.compile(of(source)))
        await it.clock.sleep(1)

        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating

        assert [*it.names()] == []
        assert source.log == ["connects", "closes", "stops"]

    run_virtual(main)
    assert caplog.records == []


def test_while_the_outputs_do_not_answer_nothing_is_connected_that_nobody_reads():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 20:
                raise OSError("connection refused")

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source = Broker(it.clock)

        view = await it.compile(of(source, Late()))

        assert (view.status, source.log) == ("starting", ["connects", "closes"])
        await it.clock.sleep(30)
        assert running(it, "p").status == "running"
        assert source.log == ["connects", "closes", "connects"]
        await it.close()

    clock = None
    run_virtual(main)


def test_a_connection_that_is_refused_later_is_tried_on():
    async def main():
        it = engine()
        source, kept = Broker(it.clock, None, REFUSED, REFUSED), Kept()
        await it.compile(of(source, kept))

        source.lose(GONE)
        await it.clock.sleep(10)
        source.send(b"1")
        await it.clock.sleep(0.001)

        assert kept.batches == [[1]]
        told = {each.message: each.count for each in running(it, "p").failures.signatures()}
        assert told == {"it does not answer": 1, "WRONGPASS": 2}
        await it.close()

    run_virtual(main)


def test_each_connection_starts_the_backoff_over(caplog):
    async def main():
        it = engine()
        source = Broker(it.clock, *[GONE] * 30)
        await it.compile(of(source))
        await it.clock.sleep(600)
        assert "connects" in source.log[-1]

        source.lose(GONE)
        lives = source.log.count("connects")
        await it.clock.sleep(0.31)

        assert source.log.count("connects") == lives + 1
        await it.close()

    with caplog.at_level("INFO"):
        run_virtual(main)
    assert caplog.text.count("connected again") == 2


def test_a_connection_that_does_not_last_is_made_again_later_and_later():
    """Two who cut each other off would else do so four times a second for ever."""

    class Evicted(Broker):
        """What is sent arrives, and then somebody else has the connection."""

        async def read(self):
            self.log.append("connects")
            yield ()
            yield [(b"1", None)]
            await self._clock.sleep(0.9)
            raise GONE

    async def main():
        it = engine()
        source = Evicted(it.clock)
        await it.compile(of(source))

        await it.clock.sleep(60)

        assert 10 < source.log.count("connects") < 25
        await it.close()

    run_virtual(main)


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
