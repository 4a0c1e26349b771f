"""What a buffer holds, what it owes, and when it lets go."""

import asyncio
import subprocess
import sys
from collections import deque

import pytest
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Delivery, Window, together
from headrace.compiler.lowering.holding import holding as holding_operator
from headrace.operators.buffer import Buffer
from tests.compiler.lowering.held import holding
from tests.doubles import StubContext
from tests.marbles import Broker
from tests.virtual import virtual


def test_messages_leave_in_the_order_they_came():
    broker = Broker()
    held = holding(broker.deliver([1, 2, 3]), broker.deliver([4]), broker.deliver([5, 6]))

    parts = [held.cut(2).batch, held.cut(3).batch, held.release().batch]

    assert parts == [[1, 2], [3, 4, 5], [6]]
    assert held.count == 0


def test_the_list_that_arrived_is_never_handed_on():
    arrived = [1, 2]
    held = holding(Delivery(arrived, Window()))

    held.take(Delivery([3], Window()))

    assert held.release().batch == [1, 2, 3]
    assert arrived == [1, 2]


def test_what_was_let_go_is_not_changed_by_what_comes_after():
    held = holding(Delivery([1], Window()))
    released = held.release()

    held.take(Delivery([2], Window()))

    assert released.batch == [1]


def test_what_is_dropped_is_not_acknowledged_and_takes_no_room():
    broker = Broker()
    held = holding(broker.deliver([1, 2, 3]), broker.deliver([4]))
    held.cut(1)

    held.drop()

    assert (held.count, held._messages, broker.acknowledged) == (0, [], [])
    held.take(broker.deliver([5]))
    released = held.release()
    released.done()
    assert (released.batch, broker.acknowledged) == ([5], [[5]])


# --- flow: the windows of the inputs


def test_a_held_batch_has_left_the_chain():
    broker = Broker()

    holding(broker.deliver([1]), broker.deliver([2]))

    assert broker.window.used == 0


def test_what_is_released_is_charged_once_to_each_window_it_came_through():
    left, right = Broker(), Broker()
    held = holding(left.deliver([1]), right.deliver([2]), left.deliver([3]))

    released = held.release()

    assert (left.window.used, right.window.used) == (1, 1)
    released.done()
    assert (left.window.used, right.window.used) == (0, 0)


def test_a_cut_charges_only_the_windows_of_the_messages_in_it():
    left, right = Broker(), Broker()
    held = holding(left.deliver([1, 2]), right.deliver([3, 4]))

    first = held.cut(2)

    assert (left.window.used, right.window.used) == (1, 0)
    first.done()
    held.cut(1)
    assert (left.window.used, right.window.used) == (0, 1)


def test_a_release_may_charge_a_full_window():
    window = Window(size=1)
    broker = Broker(window)
    held = holding(broker.deliver([1]))
    broker.deliver([2])

    held.release()

    assert window.used == 2


def test_a_batch_released_by_another_buffer_is_charged_to_all_its_windows():
    left, right = Broker(), Broker()
    inner = holding(left.deliver([1]), right.deliver([2]))

    held = holding(inner.release())

    assert (left.window.used, right.window.used) == (0, 0)
    held.release()
    assert (left.window.used, right.window.used) == (1, 1)


# --- the two accounts in a whole chain: window, buffers, two outputs


class Outputs:
    """Two outputs behind a chain, one of them as slow as it is told."""

    def __init__(self, clock, seconds):
        self._clock, self._seconds = clock, seconds
        self.written, self.waiting, self.most_waiting = [], deque(), 0
        self._arrived = asyncio.Event()

    def take(self, delivery):
        delivery.share(2)
        delivery.done()  # the quick one
        self.waiting.append(delivery)
        self.most_waiting = max(self.most_waiting, len(self.waiting))
        self._arrived.set()

    async def write(self):
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self.waiting:
                await self._clock.sleep(self._seconds)
                delivery = self.waiting.popleft()
                self.written += delivery.batch
                delivery.done()


class Chain:
    """An input with a window of 16, some buffers, and outputs."""

    def __init__(self, *buffers, writing):
        self.clock = Clock(asyncio.get_running_loop())
        self.broker = Broker(Window(16))
        self.outputs = Outputs(self.clock, writing)
        self.ctx = StubContext()
        self.sent = self.most_used = 0
        self._source = Subject()
        operators = [buffer.operator(self.ctx) for buffer in buffers]
        self._source.pipe(*operators).subscribe(self.outputs.take, scheduler=self.clock.scheduler)
        self._writing = asyncio.ensure_future(self.outputs.write())

    async def pump(self, total, every=0.0):
        window = self.broker.window
        for number in range(total):
            await window.room()
            self._source.on_next(self.broker.deliver([number]))
            self.sent += 1
            self.most_used = max(self.most_used, window.used)
            await self.clock.sleep(every)
        self._source.on_completed()

    async def finish(self, total):
        while len(self.broker.acknowledged) < total:
            await self.clock.sleep(1)
        self._writing.cancel()


@virtual
async def test_a_buffer_of_1000_behind_a_window_of_16_does_not_wait_for_itself():
    chain = Chain(Buffer(size=1000), writing=0)

    await chain.pump(5000)
    await chain.finish(5000)

    assert chain.outputs.written == list(range(5000))
    assert chain.broker.acknowledged == [[number] for number in range(5000)]
    assert chain.broker.window.used == 0


@virtual
async def test_an_output_that_blocks_stops_the_pump_and_the_buffer_stops_filling():
    chain = Chain(Buffer(seconds=1, max_messages=10_000), writing=1e9)

    pumping = asyncio.ensure_future(chain.pump(10**6, every=0.01))
    await chain.clock.sleep(600)

    # Sixteen releases of a second's messages fill the window; what came meanwhile is held.
    assert chain.outputs.most_waiting == 16
    assert chain.sent <= 17 * 101
    assert sum(count() for count in chain.ctx.holding) == 0
    assert chain.broker.acknowledged == []
    pumping.cancel()
    chain._writing.cancel()


@virtual
async def test_the_window_goes_above_its_size_by_no_more_than_what_was_held():
    chain = Chain(Buffer(size=3), Buffer(seconds=1, max_messages=100), writing=1.0)

    await chain.pump(300, every=0.01)
    await chain.finish(300)

    assert chain.outputs.written == list(range(300))
    assert chain.most_used <= 17
    assert len(chain.broker.acknowledged) == 300
    assert chain.broker.window.used == 0


@virtual
async def test_two_outputs_both_have_to_be_done_with_every_message():
    chain = Chain(Buffer(size=7), writing=0.5)

    await chain.pump(20)
    await chain.finish(20)

    assert chain.broker.acknowledged == [[number] for number in range(20)]
    assert together([chain.broker.window]) is chain.broker.window


@virtual
async def test_without_a_scheduler_at_subscription_the_clock_of_the_context_is_kept():
    ctx, source, seen = StubContext(), Subject(), []
    buffer = Buffer(seconds=3600, max_messages=10).operator(ctx)
    source.pipe(buffer).subscribe(lambda delivery: seen.append(ctx.clock.monotonic()))

    source.on_next(Broker().deliver([1]))
    await ctx.clock.sleep(7200)

    assert seen == [3600.0]


# --- told that it may be time, though nothing arrives


class Told:
    """A buffer that lets go of everything while it is open; counts how often that is asked."""

    def __init__(self):
        self.is_open, self.asked = False, 0
        self.watching, self.seen, self.errors = [], [], []
        self.ctx, self.source = StubContext(), Subject()
        operator = holding_operator(self.let_go, 10, self.ctx, self.watch)
        self.subscription = self.source.pipe(operator).subscribe(
            lambda delivery: self.seen.append(delivery.batch),
            self.errors.append,
            scheduler=TestScheduler(),
        )

    def let_go(self, held):
        self.asked += 1
        return [held.release()] if self.is_open and held.count else []

    def watch(self, told):
        self.watching.append(told)
        return lambda: self.watching.remove(told)

    def arrive(self, *messages):
        self.source.on_next(Broker().deliver([*messages]))

    def tell(self):
        [told] = self.watching
        told()

    @property
    def held(self):
        return [count() for count in self.ctx.holding]


def test_what_is_held_leaves_when_it_is_told_that_it_may():
    buffer = Told()
    buffer.arrive(1)
    buffer.tell()
    held = list(buffer.seen)

    buffer.is_open = True
    buffer.tell()

    assert (held, buffer.seen, buffer.held) == ([], [[1]], [0])


def test_a_batch_that_arrives_before_it_is_told_takes_what_was_held_along():
    buffer = Told()
    buffer.arrive(1, 2)
    buffer.is_open = True

    buffer.arrive(3)
    buffer.tell()

    assert buffer.seen == [[1, 2, 3]]


def test_while_it_holds_nothing_it_asks_nothing_when_it_is_told():
    buffer = Told()

    buffer.tell()

    assert buffer.asked == 0


def test_disposal_watches_no_longer_and_holds_nothing():
    buffer = Told()
    buffer.arrive(1)

    buffer.subscription.dispose()

    assert (buffer.watching, buffer.held, buffer.seen) == ([], [0], [])


def test_who_is_told_after_disposal_hands_on_nothing():
    buffer = Told()
    buffer.arrive(1)
    [told] = buffer.watching
    buffer.is_open = True
    buffer.subscription.dispose()

    told()  # as by a write that was telling several when the first of them ended this one

    assert buffer.seen == []


@pytest.mark.parametrize(
    "end",
    [lambda source: source.on_completed(), lambda source: source.on_error(RuntimeError("gone"))],
    ids=["completion", "error"],
)
def test_the_end_of_the_source_is_the_end_of_watching(end):
    buffer = Told()
    buffer.arrive(1)

    end(buffer.source)

    assert (buffer.watching, buffer.seen) == ([], [[1]])


def test_nothing_of_rx_is_loaded_before_a_pipeline_is_built():
    code = "import headrace.operators.buffer, sys; print('reactivex' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"
