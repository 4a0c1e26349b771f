"""Buffers with a gate in virtual time, and the bucket that they watch."""

import pytest
from hypothesis import strategies as st
from reactivex import Observable
from reactivex.testing import TestScheduler

from headrace.compiler.buckets import WHOLE, Bounds, Bucket
from headrace.compiler.component.states import PipelineState
from headrace.operators.buffer import Buffer
from tests.doubles import StubContext
from tests.marbles import over_lists

AUTO = {"type": "string", "field": "mode", "operator": "equal_to", "value": "auto"}


def gated(*conditions, key=None, bucket=None, **options):
    """Return a buffer that waits for the mode `auto`, or for other conditions."""
    until = {"conditions": list(conditions) or [AUTO], "key": key, "bucket": bucket}
    return Buffer.load({**options, "until": until})


class Marbles:
    """A scheduler, and a bucket whose clock shows the same time."""

    def __init__(self, idle_seconds=None):
        self.scheduler = TestScheduler()
        self.bucket = Bucket("machines", Bounds(idle_seconds=idle_seconds), self)
        self.ctx = StubContext(
            state=PipelineState(bucket="machines"), buckets={"machines": self.bucket}
        )

    def monotonic(self):
        return self.scheduler.now.timestamp()

    def write(self, values, key=WHOLE):
        self.bucket.merge({key: values})

    def mode(self, word):
        self.write({"mode": word})

    def later(self, writes):
        """Have modes written at their times."""
        for time, word in writes.items():
            self.scheduler.schedule_absolute(time, lambda *_, word=word: self.mode(word))

    def writes(self, mode):
        """Return an operator that writes a mode for every batch, then hands it on."""

        def step(batch):
            self.mode(mode(batch))
            return [batch]

        return self.ctx.lift(step)

    def released(self, *operators, arrivals, writes=(), disposed=1000):
        """Return what a chain that starts with a buffer hands on, and when."""
        self.later(dict(writes))
        batches = self.scheduler.create_hot_observable(*arrivals)

        def chain(source):
            return source.pipe(*operators)

        return self.scheduler.start(
            lambda: batches.pipe(over_lists(chain)), disposed=disposed
        ).messages


def released(buffer, arrivals, writes=(), *, idle_seconds=None, disposed=1000):
    """Return what a buffer hands on, and when, while modes are written at their times."""
    it = Marbles(idle_seconds)
    operator = buffer.operator(it.ctx)
    return it.released(operator, arrivals=arrivals, writes=writes, disposed=disposed)


def breaks(source):
    """An operator with a fault of its own, which no step reports."""

    def subscribe(observer, scheduler=None):
        def fault(_):
            raise RuntimeError("an operator is broken")

        return source.subscribe(
            fault, observer.on_error, observer.on_completed, scheduler=scheduler
        )

    return Observable(subscribe)


every_combination = pytest.mark.parametrize(
    "options",
    [
        {"size": 10},
        {"max_messages": 10},
        {"seconds": 100, "max_messages": 10},
        {"size": 10, "seconds": 100},
        {"size": 10, "seconds": 100, "max_messages": 20},
    ],
    ids=" ".join,
)
"""The triggers that a gate can stand beside, none of which comes by itself in a short time."""

OPTIONS = st.fixed_dictionaries(
    {
        "size": st.none() | st.integers(1, 4),
        "seconds": st.none() | st.integers(1, 6),
        "max_messages": st.none() | st.integers(4, 6),
    }
).filter(lambda options: options["size"] or options["max_messages"])
EVENTS = st.lists(
    st.tuples(st.just("batch"), st.integers(1, 9))
    | st.tuples(st.just("write"), st.booleans())
    | st.tuples(st.just("wait"), st.integers(1, 5)),
    max_size=40,
)
IDLE = st.none() | st.integers(1, 8)
