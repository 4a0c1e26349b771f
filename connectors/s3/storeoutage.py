"""The times in which a store takes no part at all: how long is waited in them, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.partsbridge import PartsBridge
from headrace.compiler.errors import Unreachable


class StoreOutage:
    """Without `retry` an outage lasts as long as it does, and is a failure with its count, and no more."""

    def __init__(self, ctx: Context, bridge: PartsBridge | None) -> None:
        """Take what bridges outages, None: the output has no `retry`."""
        self._ctx, self._bridge = ctx, bridge

    def pause(self, cause: Unreachable, delay: Callable[[], float]) -> float | None:
        """Return how long it is until the next try, having told; None: parts that fail now are given up.

        ``delay`` returns it where time heals it.
        """
        if self._bridge is None:
            pause = delay()
            self._ctx.disconnected(str(cause), pause, cause.failure)
            return pause
        try:
            return self._bridge.begin(cause, delay)
        except Unreachable:
            return None

    def tries_again(self) -> None:
        """Count that something is tried again."""
        if self._bridge is not None:
            self._bridge.retries += 1

    def over(self, told: str) -> None:
        """Note that a part was taken, after others were not; ``told``: what the log has of it."""
        if self._bridge is None:
            self._ctx.reconnected(told)
        else:
            self._bridge.over()
