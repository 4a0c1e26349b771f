"""How many moments a play may take: what ends one whose timers would be due for longer than we wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.compiler.runtime.pipeline import Pipeline

DEFAULT_MAX_MOMENTS = 1_000_000
"""Moments at which timers are due: half a minute of real time. A year of minutes has fewer."""
MOMENTS_EACH = 100
"""Those that may pass besides for each thing that is given: what arrives sets timers, and is finite."""

_REMEDY = (
    "end it earlier, have timers be due less often, or allow more with 'max_moments'"
    " (a command: --max-moments)"
)


@dataclass(frozen=True, slots=True)
class PipelineWork:
    """What one pipeline has done: messages in and out, and failures."""

    pipeline: str
    inbound: int
    outbound: int
    failures: int

    def __str__(self) -> str:
        counts = f"{self.inbound:,} messages in, {self.outbound:,} out, {self.failures:,} failures"
        return f"'{self.pipeline}' ({counts})"

    @property
    def count(self) -> int:
        """All of it, to be compared."""
        return self.inbound + self.outbound + self.failures


class PlayTooLong(HeadraceError):
    """A play has taken as many moments as it may, and is not at its end.

    ``busiest`` is the pipeline that has done the most. Units: ``at`` in seconds since it began.
    """

    def __init__(self, moments: int, at: float, busiest: PipelineWork | None) -> None:
        done = "" if busiest is None else f", and {busiest} has done the most"
        super().__init__(
            f"timers were due at {moments:,} moments, and no more may pass: it is not over after"
            f" {timedelta(seconds=at)}{done}; {_REMEDY}"
        )
        self.moments, self.at, self.busiest = moments, at, busiest


def busiest(pipelines: Iterable[Pipeline]) -> PipelineWork | None:
    """Return what the pipeline has done that has done the most; None: none has done anything."""
    done = (
        PipelineWork(each.id, each.counters.inbound, each.counters.outbound, each.failures.total)
        for each in pipelines
    )
    return max((each for each in done if each.count), key=lambda each: each.count, default=None)
