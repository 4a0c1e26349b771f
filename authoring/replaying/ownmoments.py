"""Batches as they are compared with those of another config: without what is not to be compared.

A timestamp that is the moment of its own batch says no more than where the batch stands in the timeline. A
window that moves would else differ in every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import is_
from typing import Any

from headrace.authoring.language.durations import END
from headrace.authoring.playing.played import BatchTimeline
from headrace.authoring.verdicts.matching import Words
from headrace.compiler.clock import EPOCH
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, Missing
from headrace.compiler.timestamps import rfc3339

OWN_MOMENT = Words("(its own moment)")
"""What is compared in the place of such a timestamp."""
_SHORTEST = len("2026-01-01T00:00:00Z")
_LONGEST = len("2026-01-01T00:00:00.000000000+00:00")
_TICK = timedelta(milliseconds=1)
"""Some timestamps are cut after the milliseconds."""


class IgnoredPath:
    """A path in messages that makes no difference, and whether any message has had it."""

    def __init__(self, path: DottedPath) -> None:
        self.path = path
        self.is_found = False

    def removed(self, value: JsonValue) -> JsonValue:
        """Return a value without it."""
        return self.path.changed(value, self._found)

    def _found(self, _: JsonValue) -> Missing:
        self.is_found = True
        return MISSING


def comparable(
    timeline: BatchTimeline, started_at: datetime, until: float, ignored: Sequence[IgnoredPath]
) -> list[tuple[float, JsonValue]]:
    """Return a timeline without ``ignored`` paths, and with `OWN_MOMENT` where a batch tells its moment.

    ``until`` is the moment of the end.
    """
    return [
        (
            at,
            _Batch(started_at + timedelta(seconds=until if at == END else at)).shown(
                batch, ignored
            ),
        )
        for at, batch in timeline
    ]


class _Batch:
    """A batch of one moment."""

    def __init__(self, wall: datetime) -> None:
        self._wall = wall
        self._millis = (wall - EPOCH) // _TICK

    def shown(self, value: JsonValue, ignored: Sequence[IgnoredPath]) -> JsonValue:
        for each in ignored:
            value = each.removed(value)
        return self._shown(value)

    def _shown(self, value: JsonValue) -> Any:
        """Return a value with what tells its moment replaced; itself if nothing does, as most values."""
        if isinstance(value, dict):
            shown = [*map(self._shown, value.values())]
            is_same = all(map(is_, shown, value.values()))
            return value if is_same else dict(zip(value, shown, strict=True))
        if isinstance(value, list):
            shown = [*map(self._shown, value)]
            return value if all(map(is_, shown, value)) else shown
        if isinstance(value, str):
            return OWN_MOMENT if self._is_told(value) else value
        if type(value) is int and abs(value - self._millis) <= 1:
            return OWN_MOMENT
        return value

    def _is_told(self, text: str) -> bool:
        if not _SHORTEST <= len(text) <= _LONGEST or text[4] != "-" or text[10] not in "Tt":
            return False
        try:
            return abs(datetime.fromisoformat(rfc3339(text)) - self._wall) < _TICK
        except ValueError:
            return False
