"""A broker of its own for the tests of connecting."""

from __future__ import annotations

from headrace.compiler.edges import Source
from headrace.compiler.errors import Unreachable
from headrace.connectors.network.arrivals import Arrivals
from tests.stand_ins import (
    pipeline,
    reads,
    takes,
)


class Broker(Source):
    """A source with a connection; keeps what happens to it, in order.

    ``faults`` is what becomes of one attempt to connect after the other: an error, seconds that it
    takes, or None. Payloads are those that a test sends.
    """

    connects = True

    def __init__(self, clock, *faults):
        self._clock = clock
        self._faults = list(faults)
        self._arrivals = Arrivals(1000)
        self._count = 0
        self.log = []

    def send(self, *payloads):
        for payload in payloads:
            self._arrivals.put((payload, self._count))
            self._count += 1

    @property
    def unread(self):
        """How many messages wait to be read."""
        return len(self._arrivals)

    def lose(self, cause):
        self._arrivals.break_off(cause)

    async def read(self):
        fault = self._faults.pop(0) if self._faults else None
        self.log.append("connects")
        try:
            if isinstance(fault, Exception):
                raise fault
            if fault is not None:
                await self._clock.sleep(fault)
            yield ()
            while True:
                yield await self._arrivals.take()
        finally:
            self._arrivals = Arrivals(1000)
            self.log.append("closes")

    def acknowledge(self, origins):
        self.log += [f"acknowledges {origin}" for origin in origins]

    def stop(self):
        self.log.append("stops")
        self._arrivals.wake()
        return False

    async def forget(self):
        self.log.append("forgets")


GONE = Unreachable("it does not answer")


def of(source, *outputs, transforms=(), **options):
    """Return a pipeline that reads a broker."""
    return pipeline(
        "p", [reads(source, acknowledges=True, **options)], transforms, [*map(takes, outputs)]
    )
