"""Handing batches to a sink that may have to wait: what is written when, and what is reported."""

import asyncio
from functools import partial

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.outputs import writer
from tests.doubles import StubContext
from tests.marbles import Broker
from tests.promises import promise


class Buffered(AwaitingSink):
    """Writes at once; a batch that says "wait" takes a second, and one that says "fail" fails."""

    def __init__(self, clock):
        self.clock = clock
        self.batches = []

    def begin(self, batch):
        if batch == ["fail"]:
            raise OSError("the disk is full")
        if batch == ["away"]:
            raise Unreachable("nobody answers")
        if batch == ["wait"]:
            return partial(self.write, batch)
        self.batches.append(batch)
        return None

    async def write(self, batch):
        await self.clock.sleep(1)
        self.batches.append(batch)


class Confirmed(AwaitingSink):
    """Sends at once and is told seconds later; keeps what was sent and what was confirmed.

    A batch is how long its confirmation takes; one that takes no time at all is not confirmed.
    """

    at_once = 3

    def __init__(self, clock):
        self.clock = clock
        self.sent = []
        self.batches = []

    def begin(self, batch):
        self.sent.append(batch)
        return partial(self.write, batch)

    async def write(self, batch):
        await self.clock.sleep(batch[0])
        if not batch[0]:
            raise OSError("refused")
        self.batches.append(batch)


class Output:
    """A writer at work, and all that can be seen of it."""

    def __init__(self, kind=Buffered):
        self.clock = Clock(asyncio.get_running_loop())
        self.sink = kind(self.clock)
        self.broker = Broker()
        self.place = StubContext(clock=self.clock)
        self.failures = self.place.failures
        self.notes = self.place.notes
        self.warnings = self.place.warnings
        self._writer = writer(self.sink, self.place)

    def take(self, *batches):
        for batch in batches:
            self._writer.take(self.broker.deliver(batch))

    async def drain(self):
        await self._writer.drain()

    def abandon(self):
        self._writer.abandon()

    async def start(self):
        await self._writer.start()

    async def finish(self):
        await self._writer.finish()


def test_what_waits_for_nobody_is_written_in_the_pass():
    async def main():
        output = Output()

        output.take([1], [2])

        assert output.sink.batches == output.broker.acknowledged == [[1], [2]]
        assert output.broker.window.used == 0

    run_virtual(main)


def test_what_comes_after_a_batch_that_waits_is_written_after_it():
    async def main():
        output = Output()

        output.take([1], ["wait"], [2], ["wait"], [3])
        before = list(output.sink.batches)
        await output.drain()
        output.take([4])

        assert before == [[1]]
        assert output.sink.batches == [[1], ["wait"], [2], ["wait"], [3], [4]]
        assert output.broker.window.used == 0

    run_virtual(main)


@promise("delivery.failed.batch")
def test_a_batch_that_fails_in_the_pass_or_behind_one_that_waits_costs_only_itself():
    async def main():
        output = Output()

        output.take(["fail"], ["wait"], ["fail"], [1])
        await output.drain()

        assert output.failures == ["the disk is full"] * 2
        assert output.sink.batches == [["wait"], [1]]
        assert output.broker.window.used == 0

    run_virtual(main)


def test_while_nobody_answers_batches_fail_at_once_until_the_backoff_is_over():
    async def main():
        output = Output()

        output.take(["away"], [1])
        await output.clock.sleep(1)
        output.take([2], [3])

        assert output.failures == ["nobody answers"] * 2
        assert output.sink.batches == [[2], [3]]
        assert output.notes == ["written to again"]

    run_virtual(main)


def test_a_sink_may_have_several_writes_under_way_begun_in_order():
    async def main():
        output = Output(Confirmed)

        output.take([5], [1], [4], [3], [2], [1])
        assert output.sink.sent == [[5], [1], [4]]
        await output.clock.sleep(1.5)
        assert output.sink.sent == [[5], [1], [4], [3]]
        assert output.broker.acknowledged == [[1]]
        await output.drain()

        assert output.sink.sent == [[5], [1], [4], [3], [2], [1]]
        assert sorted(output.broker.acknowledged) == [[1], [1], [2], [3], [4], [5]]
        assert output.broker.window.used == 0
        output.take([1])
        await output.drain()
        assert len(output.sink.batches) == 7

    run_virtual(main)


def test_one_of_several_writes_that_fails_costs_only_its_own_batch():
    async def main():
        output = Output(Confirmed)

        output.take([2], [0], [1], [0], [3])
        await output.drain()

        assert output.failures == ["refused"] * 2
        assert output.sink.batches == [[1], [2], [3]]
        assert output.broker.window.used == 0

    run_virtual(main)


def test_all_writes_under_way_and_all_that_wait_are_lost_when_they_are_abandoned():
    async def main():
        output = Output(Confirmed)
        output.take([2], [3], [4], [5, 5], [6])
        await output.clock.sleep(2.5)

        output.abandon()
        await output.drain()
        await output.clock.sleep(10)

        assert output.sink.batches == [[2]]
        assert output.failures == ["stopped before everything was written"] * 4
        assert output.warnings == ["messages lost, because not written in time: 5 (batches: 4)"]
        assert output.broker.acknowledged == [[2]]

    run_virtual(main)


def test_of_several_writes_that_nobody_answers_the_first_opens_the_backoff_and_no_other_lengthens_it():
    class Silent(Confirmed):
        async def write(self, batch):
            await self.clock.sleep(0.1)
            if batch[0] == 0:
                raise Unreachable("nobody answers")
            self.batches.append(batch)

    async def main():
        output = Output(Silent)

        output.take([0], [0], [0])
        await output.drain()
        output.take([1])
        assert output.sink.sent == [[0]] * 3  # too soon
        await output.clock.sleep(0.31)
        output.take([1])
        await output.drain()

        assert output.sink.batches == [[1]]
        assert output.failures == ["nobody answers"] * 4

    run_virtual(main)


class Slow(Buffered):
    """Takes a second to come up, and keeps how often it was finished."""

    finished = 0

    async def start(self):
        await self.clock.sleep(1)

    async def finish(self):
        self.finished += 1


def test_a_sink_that_comes_up_after_the_run_has_ended_is_finished_once():
    async def main():
        output = Output(Slow)
        starting = asyncio.ensure_future(output.start())
        await output.clock.sleep(0.5)

        await output.finish()
        assert output.sink.finished == 0
        await starting
        await output.finish()

        assert output.sink.finished == 1

    run_virtual(main)
