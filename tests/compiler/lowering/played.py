"""A chain played with what arrives: what it hands on, in whichever form it runs."""

import asyncio
from copy import deepcopy
from unittest.mock import patch

from reactivex.subject import Subject

from headrace.compiler import delivery as delivery_module
from headrace.compiler.buckets import Bucket
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import Acknowledgement, Delivery, Window
from headrace.compiler.lowering.lines import Pacing, SliceShare
from tests.compiler.lowering.chains import Hurrying
from tests.doubles import StubContext


class Stopped(Clock):
    """A clock that always tells the same time: a chain in slices takes longer than another."""

    def timestamp(self):
        return "2026-11-22T12:00:00.000000+00:00"


class StoppedHurrying(Stopped, Hurrying):
    """The same, on which every slice is over as soon as somebody looks."""


class Stage(StubContext):
    """The place of one transform: writes what it says into a log it shares with the others."""

    def __init__(self, index, log, pacing=None, **state):
        clock = Stopped(asyncio.get_running_loop()) if pacing is None else pacing.clock
        super().__init__(place=f"transforms[{index}]", **{"clock": clock, **state})
        self.index = index
        self.log = log
        if pacing is not None:
            self.pacing = pacing

    def warn_once(self, text):
        if not self.has_warned(text):
            self.log.append(("warned", self.index, text))
        super().warn_once(text)

    def report(self, cause, lost):
        self.log.append(("failed", self.index, f"{type(cause).__name__}: {cause}", exact(lost)))

    def lose(self, failed):
        told = [(said, type(cause), exact(messages)) for said, (cause, messages) in failed.items()]
        self.log.append(("lost", self.index, told))


def run(transforms, batches, lowering):
    """Return everything that can be told of a run, in order."""
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        for _ in playing(transforms, batches, lowering, log):
            await clock.sleep(1)

    run_virtual(main)
    return log


def playing(transforms, batches, lowering, log, **state):
    """Run batches through a chain and log all that can be told, in order; yield behind each of them."""
    window, refusals = Window(), []
    stages = [(each, Stage(index, log, **state)) for index, each in enumerate(transforms)]
    source = Subject()

    def take(delivery):
        log.append(("handed on", exact(delivery.batch)))
        delivery.done()

    source.pipe(*lowering(stages, refusals)).subscribe(
        take, on_completed=lambda: log.append(("completed",))
    )
    for number, batch in enumerate(batches):
        window.take()
        settled = Acknowledgement(lambda number=number: log.append(("settled", number)))
        source.on_next(Delivery(batch, window, settled))
        yield
    source.on_completed()
    yield  # what was held until then may be worked on in slices
    log += [("owed", window.used), ("refused", refusals)]


def run_in_slices(transforms, batches, lowering):
    """Return the same of a run in which every batch is large, and every message a part."""
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        for _ in playing(transforms, batches, lowering, log, pacing=in_slices()):
            await clock.sleep(1)

    with patch.object(delivery_module, "PART", 1):
        run_virtual(main)
    return log


def in_slices():
    """Return the pacing for which every batch is large."""
    return Pacing(StoppedHurrying(), SliceShare(), large=0)


def run_with_state(transforms, batches, lowering, key, bounds, remembered, pacing=lambda: None):
    """Return the same of a run with a bucket, and what is in the bucket after every batch.

    A second passes between batches.
    """
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        bucket = Bucket("machines", bounds, clock)
        bucket.merge(deepcopy(remembered))
        bucket.watch("x", lambda: log.append(("told", content(bucket))))
        state = PipelineState(bucket="machines", key=key)
        about = {"state": state, "buckets": {"machines": bucket}, "pacing": pacing()}
        for _ in playing(transforms, batches, lowering, log, **about):
            await clock.sleep(0.5)
            log.append(("holds", content(bucket)))
            await clock.sleep(0.5)

    run_virtual(main)
    return log


def content(bucket):
    """Return what a bucket remembers, in its order, and when it was written."""
    cutoff = bucket.cutoff()
    return [
        (key, exact(entry.values), entry.at)
        for key, entry in bucket.entries.items()
        if entry.at > cutoff
    ]


def exact(value):
    """Return a value so that only the same is equal: 1, 1.0 and True differ, as do -0.0 and 0.0."""
    if isinstance(value, dict):
        return [(key, exact(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return type(value), value.hex() if isinstance(value, float) else value
