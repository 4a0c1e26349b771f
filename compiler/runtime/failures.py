"""Failures of one pipeline: what failed, where, and exactly how often.

A failure is known by its stage, component and message. Counts are kept whether or not anybody
watches, and nothing is left out of them. The log line and the event are throttled: at most one per
stage and component in 250 ms. The table holds 64 signatures; the one seen longest ago makes room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headrace.compiler.clock import Clock

Stage = Literal["input", "transform", "output"]

MOST_SIGNATURES = 64
MOST_BYTES = 2048
QUIET_SECONDS = 0.25

log = logging.getLogger("headrace.pipeline")


@dataclass(slots=True)
class Signature:
    """One distinct failure. Times in epoch milliseconds."""

    stage: Stage
    component: int | None
    message: str
    first_seen: int
    last_seen: int
    count: int = 1


def cut(text: str, most: int = MOST_BYTES) -> str:
    """Return ``text`` in at most ``most`` bytes, cut at a character boundary and marked with `…`."""
    if len(text) * 4 <= most:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore") + "…"


class Failures:
    """Counts failures by signature; tells whoever listens, throttled."""

    def __init__(
        self, pipeline: str, clock: Clock, tell: Callable[[Stage, int | None, str], None]
    ) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._tell = tell
        self._signatures: dict[tuple[Stage, int | None, str], Signature] = {}
        self._told: dict[tuple[Stage, int | None], float] = {}
        self.by_stage: dict[Stage, int] = {"input": 0, "transform": 0, "output": 0}
        self.dropped_signatures = 0

    def report(self, stage: Stage, component: int | None, message: str) -> None:
        """Count one failure; log it and tell it unless that component has just been heard."""
        message = cut(" ".join(message.split()))
        self.by_stage[stage] += 1
        self._count(stage, component, message)
        now, place = self._clock.monotonic(), (stage, component)
        if now - self._told.get(place, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._told[place] = now
        where = stage + "s" + ("" if component is None else f"[{component}]")
        log.warning("pipeline '%s' %s: %s", self._pipeline, where, message)
        self._tell(stage, component, message)

    def signatures(self) -> list[Signature]:
        """Return what failed, last seen first, then by message."""
        return sorted(self._signatures.values(), key=lambda one: (-one.last_seen, one.message))

    @property
    def total(self) -> int:
        """How many failures there were."""
        return sum(self.by_stage.values())

    def _count(self, stage: Stage, component: int | None, message: str) -> None:
        key, now = (stage, component, message), self._clock.millis()
        known = self._signatures.pop(key, None)
        if known is None:
            if len(self._signatures) >= MOST_SIGNATURES:
                del self._signatures[next(iter(self._signatures))]
                self.dropped_signatures += 1
            known = Signature(stage, component, message, now, now)
        else:
            known.last_seen = now
            known.count += 1
        self._signatures[key] = known  # last in order: what is first was seen longest ago
