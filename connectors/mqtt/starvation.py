"""Whether a broker keeps messages back until we acknowledge: what has been seen of it."""

from __future__ import annotations

from headrace.compiler.clock import Clock

AT_ONCE_SECONDS = 0.1
"""How soon a broker that only waited for an acknowledgement sends on."""
ENOUGH = 2
"""How often in a row that has to be seen: once, it may be chance."""


class Starvation:
    """Counts how often in a row a broker sent nothing until we acknowledged, and something then at once.

    A source that is merely quiet looks the same for as long as nothing is acknowledged, and says
    nothing when something is.
    """

    __slots__ = ("_acknowledged_at", "_clock", "_is_stalled", "_times")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_stalled = False
        self._acknowledged_at: float | None = None
        self._times = 0

    def stalled(self) -> None:
        """Note that nothing came for a while, and that we owe all that the broker lets us owe."""
        if self._acknowledged_at is not None:  # and nothing came of it
            self._settle(is_evidence=False)
        self._is_stalled = True

    def acknowledged(self) -> None:
        """Note that we owe less."""
        if self._is_stalled:
            self._acknowledged_at = self._clock.monotonic()

    def came(self) -> bool:
        """Note that messages came; return whether enough has been seen by now."""
        if self._is_stalled:
            at = self._acknowledged_at
            self._settle(at is not None and self._clock.monotonic() - at <= AT_ONCE_SECONDS)
        return self._times >= ENOUGH

    def begin(self) -> None:
        """Note that there is another connection: nothing is owed over it yet."""
        self._is_stalled, self._acknowledged_at = False, None

    def _settle(self, is_evidence: bool) -> None:
        self._times = self._times + 1 if is_evidence else 0
        self.begin()
