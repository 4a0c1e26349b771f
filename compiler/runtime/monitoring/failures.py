"""Failures of one pipeline: counted exactly, logged at once when they are new and summed up after.

    pipeline 'line-1' transforms[0]: mapping 0 ('cast'): ...
    pipeline 'line-1' transforms[0]: 41 more: mapping 0 ('cast'): ...

Counts are kept whether or not anybody watches, and nothing is left out of them. The `count` of the
entries, 1 and 41, has the sum of all that failed as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import get_args

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.runtime.monitoring.repeats import Repeats
from headrace.compiler.runtime.monitoring.signatures import ComponentKey, Signature, Signatures

MOST_BYTES = 2048
LOG_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds between two sums in the log of what goes on failing: a short trial is told of soon, and a
long outage fills no disk."""

log = logging.getLogger("headrace.pipeline")


def cut(text: str, most: int = MOST_BYTES) -> str:
    """Return ``text`` in at most ``most`` bytes, cut at a character boundary and marked with `…`."""
    if len(text) * 4 <= most:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore") + "…"


class Failures:
    """Counts failures, by stage and in a table of ``signatures``; ``tell`` is told of every one."""

    def __init__(
        self,
        pipeline: str,
        clock: Clock,
        tell: Callable[[Stage, int | None, str], None],
        signatures: Signatures,
    ) -> None:
        self._pipeline = pipeline
        self._tell = tell
        self._logged = Repeats(clock, LOG_PAUSES, self._log)
        self.table = signatures
        self.by_stage: dict[Stage, int] = dict.fromkeys(get_args(Stage), 0)

    def report(self, stage: Stage, component: int | None, message: str) -> None:
        """Count one failure, tell of it, and log it now or with others."""
        message = cut(" ".join(message.split()))
        self.by_stage[stage] += 1
        self.table.count(stage, component, message)
        self._logged.add(stage, component, message)
        self._tell(stage, component, message)

    def settle(self) -> None:
        """Log what has been counted and not been logged: the pipeline is over."""
        self._logged.settle()

    def signatures(self) -> list[Signature]:
        """Return what failed, last seen first, then by message."""
        return self.table.latest()

    @property
    def total(self) -> int:
        """How many failures there were."""
        return sum(self.by_stage.values())

    def _log(self, place: ComponentKey, count: int, *, is_more: bool) -> None:
        stage, component, message = place
        where = LIST_OF[stage] + ("" if component is None else f"[{component}]")
        said = f"{count:,} more: {message}" if is_more else message
        log.warning("pipeline '%s' %s: %s", self._pipeline, where, said, extra={"count": count})
