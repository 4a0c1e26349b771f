"""Inputs with a broker behind them: connected while they are built, let go of at the very end."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.errors import BuildRefused, Refused
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.runtime.connected import GONE, Broker, of
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    engine,
    running,
)

REFUSED = BuildRefused(Fault("turned-away", "WRONGPASS", path=("connection",)))


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
        [outage] = running(it, "p").failures.table.latest()
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


@promise("delivery.case.refused_later")
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
        told = {each.message: each.count for each in running(it, "p").failures.table.latest()}
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
