"""Failures of one pipeline: counted exactly, told throttled.

Counts are kept whether or not anybody watches, and nothing is left out of them. The log line and the
event are one decision: at most one per stage and component in 250 ms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.signatures import Signature, Signatures, Stage

MOST_BYTES = 2048
QUIET_SECONDS = 0.25

log = logging.getLogger("headrace.pipeline")


def cut(text: str, most: int = MOST_BYTES) -> str:
    """Return ``text`` in at most ``most`` bytes, cut at a character boundary and marked with `…`."""
    if len(text) * 4 <= most:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore") + "…"


class Failures:
    """Counts failures, by stage and in a table of ``signatures``; tells whoever listens."""

    def __init__(
        self,
        pipeline: str,
        clock: Clock,
        tell: Callable[[Stage, int | None, str], None],
        signatures: Signatures,
    ) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._tell = tell
        self._told: dict[tuple[Stage, int | None], float] = {}
        self.table = signatures
        self.by_stage: dict[Stage, int] = {"input": 0, "transform": 0, "output": 0}

    def report(self, stage: Stage, component: int | None, message: str) -> None:
        """Count one failure; log it and tell it unless that component has just been heard."""
        message = cut(" ".join(message.split()))
        self.by_stage[stage] += 1
        self.table.count(stage, component, message)
        now, place = self._clock.monotonic(), (stage, component)
        if now - self._told.get(place, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._told[place] = now
        where = stage + "s" + ("" if component is None else f"[{component}]")
        log.warning("pipeline '%s' %s: %s", self._pipeline, where, message)
        self._tell(stage, component, message)

    def signatures(self) -> list[Signature]:
        """Return what failed, last seen first, then by message."""
        return self.table.latest()

    @property
    def total(self) -> int:
        """How many failures there were."""
        return sum(self.by_stage.values())
