"""One operator of a chain, driven by hand, and a clock on which nobody has much time."""

import asyncio
from itertools import count

from reactivex.subject import Subject

from headrace.compiler.clock import Clock
from tests.marbles import Broker


class Hurrying(Clock):
    """A clock on which every slice is over as soon as somebody looks."""

    def __init__(self):
        super().__init__(asyncio.get_running_loop())
        self.monotonic = count().__next__


class Chain:
    """One operator between a source and an end that holds the deliveries until it is told."""

    def __init__(self):
        self.failures = []
        self.lost = []
        self.taken = []
        self.ended = []
        self.broker = Broker()
        self.source = Subject()

    def report(self, cause, lost):
        self.failures.append(str(cause))
        self.lost.append(lost)

    def runs(self, operator):
        """Subscribe; what ends the subscription is returned."""
        return self.source.pipe(operator).subscribe(
            self.taken.append, self.ended.append, lambda: self.ended.append("completed")
        )

    def send(self, *batches):
        for batch in batches:
            self.source.on_next(self.broker.deliver(batch))

    @property
    def batches(self):
        return [delivery.batch for delivery in self.taken]

    @property
    def owed(self):
        return self.broker.window.used
