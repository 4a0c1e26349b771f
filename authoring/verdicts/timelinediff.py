"""What is wrong with a timeline that came, as data."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from headrace.authoring.language.durations import END, SECOND, told
from headrace.authoring.verdicts.matching import Difference, Matching, value_text
from headrace.authoring.verdicts.pairing import Pair, TimedBatches, as_batch, instant, pairs
from headrace.compiler.delivery import JsonValue

DifferenceKind = Literal["differs", "moved", "missing", "unexpected"]

_MOST_BATCHES = 100
_MOST_DIFFERENCES = 50
_MOST_COUNTED = 1_000
"""Up to here differences are counted that are not told; 20,000 messages may differ in each field."""
_AROUND = 2
"""Moments that are drawn before and after one at which something is wrong."""
DRAWN_BATCHES = 10
"""Batches that are drawn, out of those that are told."""

_Numbers = defaultdict[float, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDifference:
    """A batch that is not what was expected, or not when it was.

    ``at`` is when it was expected, or when it came if nobody expected it. ``batch`` is the text of one
    that has no counterpart, ``differences`` are those of one that has another content, and ``more`` is how
    many there are besides.

    Units: seconds since the start of the test, or `END`.
    """

    kind: DifferenceKind
    number: int
    """Of its pair, by which the columns name it."""
    at: float
    came_at: float | None = None
    batch: str | None = None
    differences: tuple[Difference, ...] = ()
    more: int = 0

    def as_json(self) -> Iterator[dict[str, Any]]:
        """Yield an object for each thing that is wrong with it."""
        said: dict[str, Any] = {"kind": self.kind, "at": told(self.at)}
        if self.came_at is not None:
            said["came_at"] = told(self.came_at)
        if self.batch is not None:
            said["expected" if self.kind == "missing" else "found"] = self.batch
        if not self.differences:
            yield said
        for each in self.differences:
            yield {**said, "path": each.path, "expected": each.expected, "found": each.found}
        if self.more:
            yield {**said, "more": self.more}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarbleColumn:
    """A moment that is drawn, with the pairs that are expected then and those that came."""

    at: float
    expected: tuple[int, ...]
    came: tuple[int, ...]
    is_after_gap: bool
    """Whether moments are left out before it."""


@dataclass(frozen=True, slots=True)
class TimelineDifference:
    """What is wrong with a timeline, and the moments around it."""

    batches: tuple[BatchDifference, ...]
    more: int
    """Batches that are wrong besides."""
    columns: tuple[MarbleColumn, ...]
    """Those around the first `DRAWN_BATCHES`."""
    goes_on: bool
    """Whether moments are left out after the last column."""

    def as_json(self) -> list[dict[str, Any]]:
        """Return an object for each thing that is wrong, and a last one for the batches left out."""
        listed = [said for batch in self.batches for said in batch.as_json()]
        return [*listed, {"kind": "more", "batches": self.more}] if self.more else listed


def compare(
    expected: TimedBatches, came: TimedBatches, matching: Matching
) -> TimelineDifference | None:
    """Return what is wrong with the batches that came; None: they are as expected."""
    wanted = [(at, as_batch(what)) for at, what in expected]
    return _Comparison(wanted, came, pairs(wanted, came, matching), matching).difference()


def compare_values(
    expected: Sequence[tuple[float, JsonValue]],
    found: Sequence[tuple[float, JsonValue]],
    matching: Matching,
) -> TimelineDifference | None:
    """Return what is wrong with values that were looked at in turn, as a bucket is; None: nothing.

    Each has its counterpart at the same place of the other timeline.
    """
    table: list[Pair] = [(place, place) for place in range(len(expected))]
    return _Comparison(expected, found, table, matching).difference()


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two timelines whose batches are paired."""

    expected: TimedBatches
    came: TimedBatches
    table: Sequence[Pair]
    matching: Matching

    def difference(self) -> TimelineDifference | None:
        wrong = (number for number, pair in enumerate(self.table) if self._is_wrong(pair))
        batches = tuple(map(self._batch, islice(wrong, _MOST_BATCHES)))
        if not batches:
            return None
        columns, goes_on = self._columns([each.number for each in batches[:DRAWN_BATCHES]])
        return TimelineDifference(batches, sum(1 for _ in wrong), columns, goes_on)

    def _is_wrong(self, pair: Pair) -> bool:
        i, j = pair
        if i is None or j is None or self._is_moved(i, j):
            return True
        return not self.matching.holds(self.expected[i][1], self.came[j][1])

    def _is_moved(self, i: int, j: int) -> bool:
        return instant(self.expected[i][0]) != instant(self.came[j][0])

    def _batch(self, number: int) -> BatchDifference:
        i, j = self.table[number]
        if i is None:
            assert j is not None
            at, batch = self.came[j]
            text = value_text(_alone(batch))
            return BatchDifference(kind="unexpected", number=number, at=at, batch=text)
        at, wanted = self.expected[i]
        if j is None:
            text = value_text(_alone(wanted))
            return BatchDifference(kind="missing", number=number, at=at, batch=text)
        came_at, found = self.came[j]
        if self._is_moved(i, j):
            return BatchDifference(kind="moved", number=number, at=at, came_at=came_at)
        differences = self.matching.differences(wanted, found)
        told_of = tuple(islice(differences, _MOST_DIFFERENCES))
        more = sum(1 for _ in islice(differences, _MOST_COUNTED))
        return BatchDifference(
            kind="differs", number=number, at=at, came_at=came_at, differences=told_of, more=more
        )

    def _columns(self, numbers: Sequence[int]) -> tuple[tuple[MarbleColumn, ...], bool]:
        """Return the moments around those of some pairs, and whether there are later ones."""
        moments = sorted({instant(at) for line in (self.expected, self.came) for at, _ in line})
        near = set[int]()
        for number in numbers:
            for at in self._moments(self.table[number]):
                place = bisect_left(moments, at)
                near |= set(range(max(0, place - _AROUND), place + _AROUND + 1))
        places = [place for place in sorted(near) if place < len(moments)]
        expected, came = self._sides({moments[place] for place in places})
        columns = tuple(
            MarbleColumn(
                at=_seconds(moments[place]),
                expected=tuple(expected[moments[place]]),
                came=tuple(came[moments[place]]),
                is_after_gap=place > 0 and place - 1 not in near,
            )
            for place in places
        )
        return columns, places[-1] < len(moments) - 1

    def _moments(self, pair: Pair) -> Iterator[float]:
        """Yield when a pair was expected, and when it came."""
        i, j = pair
        if i is not None:
            yield instant(self.expected[i][0])
        if j is not None:
            yield instant(self.came[j][0])

    def _sides(self, moments: Collection[float]) -> tuple[_Numbers, _Numbers]:
        """Return the numbers of the pairs that are expected at some moments, and that came then."""
        sides: tuple[_Numbers, _Numbers] = (defaultdict(list), defaultdict(list))
        for number, pair in enumerate(self.table):
            for side, line, place in zip(sides, (self.expected, self.came), pair, strict=True):
                if place is not None and (at := instant(line[place][0])) in moments:
                    side[at].append(number)
        return sides


def _seconds(moment: float) -> float:
    return END if moment == END else moment / SECOND


def _alone(batch: JsonValue) -> JsonValue:
    """Return the message of a batch that has only one."""
    return batch[0] if isinstance(batch, list) and len(batch) == 1 else batch
