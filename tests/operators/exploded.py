"""What an `explode` makes: of a batch, and in turns."""

import asyncio
import gc
from time import thread_time

from reactivex.subject import Subject

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.chain import lower
from headrace.operators.explode import Explode
from tests.doubles import StubContext

ORDER = {
    "order": {"id": 7, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]},
    "customer": {"id": "c1"},
}
TOO_MUCH = "its messages share too much: at most 24 MiB of JSON, counted for each of them"


def exploded(document, *batch):
    """Return what is made of a batch; of one that fails, why."""
    untouched = repr(batch)
    try:
        made = Explode.load(document).step(StubContext())([*batch])
    except BatchFailed as cause:
        made = str(cause)
    assert repr(batch) == untouched
    return made


def skipped(document, *batch):
    """Return what is made of a batch, and how many messages each failure has cost."""
    ctx, untouched = StubContext(), repr(batch)
    explode = Explode.load({"from": "x", "on_error": "skip"} | document)
    made = explode.step(ctx)([*batch])
    assert repr(batch) == untouched
    return made, ctx.lost


class Turns:
    """A chain with an `explode` in it, and how long it keeps the loop from everybody else."""

    def __init__(self, document, clock=Clock):
        self.loop = asyncio.get_running_loop()
        self.ctx = StubContext(clock=clock(self.loop))
        self.longest = 0.0
        self.turns = 0
        self.made, self.source = [], Subject()
        self.window = Window()
        [operator] = lower([(Explode.load(document), self.ctx)], [])
        self.source.pipe(operator).subscribe(self._take)

    def _take(self, delivery):
        self.made.append(delivery.batch)
        delivery.done()

    async def takes(self, *batch):
        """Hand a batch in; look at the time that each turn of the loop takes this thread.

        What others have left is collected before: to free the messages of another test takes longer.
        """
        gc.collect()
        gc.disable()
        try:
            self.window.take()
            began = thread_time()
            self.source.on_next(Delivery([*batch], self.window))
            while self.window.used:
                self.longest = max(self.longest, thread_time() - began)
                self.turns += 1
                began = thread_time()
                await asyncio.sleep(0)
        finally:
            gc.enable()
