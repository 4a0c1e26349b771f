"""A chain with state between lists: what it hands on, what its bucket holds, what it says."""

import asyncio

from reactivex.subject import Subject

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.states import PipelineState
from tests.doubles import StubContext
from tests.marbles import over_lists


class Keyed:
    """A chain on the running loop, lowered one way or the other, with an empty bucket.

    All its transforms say what they have to say to one context.
    """

    def __init__(self, lowering, *transforms, key="machine", max_keys=10, idle_seconds=None):
        self.clock = Clock(asyncio.get_running_loop())
        self.bucket = Bucket("machines", Bounds(max_keys, idle_seconds), self.clock)
        self.ctx = StubContext(
            place="transforms[0]",
            clock=self.clock,
            state=PipelineState(bucket="machines", key=key),
            buckets={"machines": self.bucket},
        )
        self._out = []
        self._source = Subject()
        operators = lowering([(each, self.ctx) for each in transforms], [])
        self._source.pipe(over_lists(lambda source: source.pipe(*operators))).subscribe(
            self._out.append
        )

    def takes(self, *batches):
        """Send batches through; return those that come out."""
        self._out.clear()
        for batch in batches:
            self._source.on_next(batch)
        return [*self._out]

    def holds(self):
        """Return what is remembered, the key written longest ago first."""
        return {key: values for key, values, _ in reversed(self.bucket.newest(len(self.bucket)))}
