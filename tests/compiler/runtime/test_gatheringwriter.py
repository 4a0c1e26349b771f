"""What an output gathers is acknowledged when it is handed over, and not when it is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.delivery import BATCHES_UNDER_WAY, Batch, SharedDebt
from headrace.compiler.edges import Arrival, GatheringSink, Source
from headrace.compiler.errors import BatchFailed
from tests.compiler.runtime.durable import Gated
from tests.stand_ins import Kept, Told, batches, does, engine, pipeline, reads, run, takes
from tests.virtual import virtual


class Gathering(GatheringSink):
    """Gathers batches until it is told to hand them over; it refuses what has a message `bad`."""

    def __init__(self, *, hands_over_at_end: bool = True) -> None:
        self._custody: SharedDebt | None = None
        self._owed: list[SharedDebt] = []
        self._hands_over_at_end = hands_over_at_end
        self.messages: list[Any] = []

    def owe(self, custody: SharedDebt | None) -> None:
        self._custody = custody

    async def write(self, batch: Batch) -> None:
        if "bad" in batch:
            raise BatchFailed("no")
        self.messages += batch
        if self._custody is not None:
            self._custody.parts += 1
            self._owed.append(self._custody)

    def hand_over(self) -> None:
        """Settle what is owed."""
        owed, self._owed = self._owed, []
        for each in owed:
            each.close()

    async def finish(self) -> None:
        if self._hands_over_at_end:
            self.hand_over()


Acknowledged = tuple[list[int], list[int], list[int]]


def acknowledged(
    script: list[Any],
    sink: Gathering,
    *others: Any,
    transforms: list[Any] | None = None,
) -> Acknowledged:
    """Run a pipeline; return what was acknowledged before and after a handing over, and after its end."""

    async def main() -> Acknowledged:
        it = engine()
        source = Told(it.clock, script)
        given = reads(source, acknowledges=True, ack="on_delivery")
        outputs = [takes(each) for each in (sink, *others)]
        await run(it, pipeline("p", [given], transforms or [], outputs))
        await it.clock.sleep(1)
        before = [*source.acknowledged]
        sink.hand_over()
        after = [*source.acknowledged]
        await it.clock.sleep(10)
        await it.close()
        return before, after, source.acknowledged

    return run_virtual(main)


def test_what_is_gathered_is_acknowledged_when_it_is_handed_over() -> None:
    sink = Gathering()

    before, after, _ = acknowledged([batches(["a"], ["b"])], sink)

    assert (before, after) == ([], [0, 1])


def test_what_is_gathered_takes_no_place_on_the_way() -> None:
    sink = Gathering()
    count = 3 * BATCHES_UNDER_WAY

    acknowledged([batches(*([n] for n in range(count)))], sink)

    assert sink.messages == [*range(count)]


def test_what_is_handed_over_at_the_end_is_acknowledged_then() -> None:
    script = [batches(["a"]), 5, [(["b"], 1)]]

    _, after, ended = acknowledged(script, Gathering())

    assert (after, ended) == ([0], [0, 1])


def test_what_is_never_handed_over_is_never_acknowledged() -> None:
    script = [batches(["a"]), 5, [(["b"], 1)]]

    _, _, ended = acknowledged(script, Gathering(hands_over_at_end=False))

    assert ended == [0]


def test_a_batch_that_fails_is_acknowledged_as_one_of_any_output() -> None:
    before, _, _ = acknowledged([batches(["bad"], ["b"])], Gathering())

    assert before == [0]


def test_parts_of_an_arrival_wait_for_each_other() -> None:
    split = does(lambda batch: [[each] for each in batch])

    before, after, _ = acknowledged([batches(["a", "bad", "c"])], Gathering(), transforms=[split])

    assert (before, after) == ([], [0])


def test_an_output_that_writes_at_once_does_not_acknowledge_for_one_that_gathers() -> None:
    before, after, _ = acknowledged([batches(["a"])], Gathering(), Kept())

    assert (before, after) == ([], [0])


class Broker(Source):
    """A broker that hears nothing any more once its reader is closed."""

    is_raw = False
    connects = True

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self.acknowledged: list[Any] = []
        self.has_hung_up = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        try:
            yield ()
            yield batches(["a"], ["b"])
            await self._stopping.wait()
            yield ()
        finally:
            self.has_hung_up = True

    def stop(self) -> bool:
        self._stopping.set()
        return False

    def acknowledge(self, origins: Sequence[Any]) -> None:
        if not self.has_hung_up:
            self.acknowledged += origins


class Lasting(Gathering):
    """Takes a second to hand over at the end."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def finish(self) -> None:
        await self._clock.sleep(1)
        await super().finish()


@virtual
async def test_the_broker_is_let_go_of_when_it_has_heard_of_what_is_handed_over_at_the_end() -> (
    None
):
    it = engine()
    broker = Broker()
    given = reads(broker, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("p", [given], [], [takes(Lasting(it.clock))]))
    await it.clock.sleep(1)

    await it.close()

    assert broker.acknowledged == [0, 1]
    assert broker.has_hung_up


class Slow(Gathering):
    """Takes longer to finish than there is time where another output has taken its share."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def finish(self) -> None:
        await self._clock.sleep(2)
        await super().finish()


@virtual
async def test_a_broker_is_let_go_of_though_an_output_has_not_the_time_to_finish() -> None:
    it, broker = engine(), Broker()
    given = reads(broker, acknowledges=True, ack="on_delivery")
    outputs = [takes(Slow(it.clock)), takes(Gated(is_open=False))]
    await run(it, pipeline("p", [given], [], outputs))
    await it.clock.sleep(1)

    await it.dispose("p")
    await it.clock.sleep(10)

    assert broker.has_hung_up
    await it.close()
