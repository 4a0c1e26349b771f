"""A chain whose operators take turns with others over a large batch."""

import asyncio
import gc
from time import thread_time

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import LARGE_BATCH, PART, Delivery
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.chain import lower
from headrace.compiler.lowering.lines import Pacing, SliceShare
from tests.compiler.lowering.chains import Chain, Hurrying
from tests.doubles import StubContext
from tests.marbles import Broker

LARGE = [*range(LARGE_BATCH + 1)]


class SlicedChain(Chain):
    """The same for an operator that takes turns with others."""

    def __init__(self):
        super().__init__()
        self.clock = Hurrying()
        self.pacing = Pacing(self.clock, SliceShare())

    async def settles(self):
        """Wait until nothing is worked on."""
        while self.pacing.slices.paused:
            await self.clock.sleep(0)


class Stage:
    """A context with an index, as the lowering wants it."""

    def __init__(self, ctx):
        self._ctx, self.index = ctx, 0

    def __getattr__(self, name):
        return getattr(self._ctx, name)


async def longest_turn(transform, batch, *behind, is_empty=False):
    """Return the CPU seconds of the longest turn while a batch is worked on, in real time.

    Those ``behind`` a transform are fused with it. Unless it ``is_empty``, something becomes of the batch.
    """
    clock, chain, longest = Clock(asyncio.get_running_loop()), SlicedChain(), 0.0
    ctx = StubContext(place="transforms[0]", clock=clock)
    ctx.pacing = Pacing(clock, SliceShare())
    [operator] = lower([(each, ctx) for each in (transform, *behind)], [])
    chain.runs(operator)
    gc.disable()  # what it finds is of others as well
    try:
        last = thread_time()
        chain.source.on_next(Delivery(batch, Broker().window))
        longest = thread_time() - last
        while ctx.pacing.slices.paused:
            last = thread_time()
            await clock.sleep(0)
            longest = max(longest, thread_time() - last)
    finally:
        gc.enable()
    assert is_empty or chain.batches or ctx.failures
    return longest


def doubling(log=None):
    """Return a step that doubles each message, part after part; ``log`` takes what it works on."""

    def paced(batch):
        made = []
        for start in range(0, len(batch), PART):
            part = batch[start : start + PART]
            if log is not None:
                log.append(part[0])
            if "bad" in part:
                raise BatchFailed("a bad message")
            made += [each * 2 for each in part]
            yield None
        yield made

    return paced


def at_once(batch):
    if "bad" in batch:
        raise BatchFailed("a bad message")
    return [[each * 2 for each in batch]]
