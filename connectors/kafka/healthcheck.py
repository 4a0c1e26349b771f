"""Whether the brokers that a component needs answer, asked when nothing comes or nothing is confirmed.

The driver connects again by itself and keeps to itself that it has to. A consumer so stays the member
of its group that it was, and goes on as soon as the broker is back; a new one would have to wait until
the group has given up the old one. What is missing is told here.
"""

from __future__ import annotations

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.kafka.connection import Cluster
from headrace.connectors.kafka.metadata import NotThere

LOOK_SECONDS = 1.0
"""How long a batch waits before the brokers are asked; how long they may take to say."""


class HealthCheck:
    """Counts it as a failure when brokers do not answer, and notes their return.

    With a ``group``, the broker that looks after it is one of them.
    """

    def __init__(
        self, cluster: Cluster, topic: str, ctx: Context, group: str | None = None
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ctx = ctx
        self._group = group
        self._backoff = Backoff()
        self._next = 0.0
        self._missing_since: float | None = None
        self.reason: str | None = None
        """What was told last; None when nothing is wrong."""

    async def look(self) -> None:
        """Ask the brokers, if it is time to: each try that goes wrong is a failure.

        We try on the backoff; the driver does by itself, several times a second.
        """
        monotonic = self._ctx.clock.monotonic
        if monotonic() >= self._next:
            if reason := await self._ask():
                self.reason = reason
                self._ctx.fail(reason)
            self._next = monotonic() + self._backoff.next()

    def over(self) -> None:
        """Take note that the brokers answer the driver."""
        if self._next:
            self._next, self._missing_since = 0.0, None
            self._backoff.reset()
        self._answered()

    def _answered(self) -> None:
        if self.reason is not None:
            self.reason = None
            self._ctx.note("connected again")

    async def _ask(self) -> str | None:
        """Return what is wrong, as the brokers say; None when that may be over in a moment."""
        try:
            await self._cluster.examine(self._topic, self._group, LOOK_SECONDS)
        except NotThere as cause:
            now = self._ctx.clock.monotonic()
            if self._missing_since is None:
                self._missing_since = now
            is_lasting = now - self._missing_since >= self._cluster.limits.missing_seconds
            return str(cause) if is_lasting else None
        except (BuildRefused, Unreachable) as cause:
            self._missing_since = None
            return str(cause)
        self._missing_since = None
        self._answered()
        return None
