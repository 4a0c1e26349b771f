"""What the log tells of those who were not signed in, so that an attack shows and fills no disk.

    a sign-in was refused, from 192.0.2.7: wrong username or password
    41 more sign-ins were refused, the last from 192.0.2.7: wrong username or password

The first is told at once, the others once a second together. Told is where from and why: no name, no
password, no token. Where from is the peer of the connection; behind a proxy that is the proxy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from headrace.compiler.clock import Clock
from headrace.web.auth.access import TurnedAway

QUIET_SECONDS = 1.0

log = logging.getLogger("headrace.web")


class RefusalLog:
    """Logs who was turned away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._quiet: asyncio.TimerHandle | None = None
        self._untold = 0
        self._last = ""

    def add(self, scope: Mapping[str, Any], cause: TurnedAway) -> None:
        """Tell of a request (an ASGI scope) that was turned away, now or soon."""
        peer = scope.get("client")
        said = f"{peer[0] if peer else 'an unknown address'}: {cause.reason}"
        if self._quiet is None:
            log.warning("a sign-in was refused, from %s", said)
            self._be_quiet()
        else:
            self._untold += 1
            self._last = said

    def close(self) -> None:
        """Tell what is left to tell."""
        if self._quiet is not None:
            self._quiet.cancel()
            self._tell_others()

    def _be_quiet(self) -> None:
        self._quiet = self._clock.call_later(QUIET_SECONDS, self._over)

    def _over(self) -> None:
        if self._tell_others():
            self._be_quiet()

    def _tell_others(self) -> bool:
        """Tell of those that nothing was told of; return whether there were any."""
        count, self._untold, self._quiet = self._untold, 0, None
        if count == 1:
            log.warning("one more sign-in was refused, from %s", self._last)
        elif count:
            log.warning("%d more sign-ins were refused, the last from %s", count, self._last)
        return count > 0
