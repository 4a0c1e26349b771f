"""Which batch that came is which of those expected."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from headrace.authoring.language.durations import END, SECOND
from headrace.authoring.language.matchers import field_named, matcher_in
from headrace.authoring.verdicts.assignment import cheapest
from headrace.authoring.verdicts.matching import Matching
from headrace.compiler.delivery import Batch, JsonValue

TimedBatches = Sequence[tuple[float, JsonValue]]
"""A timeline: moments, each with a batch. One of a single message may be written as that message.

Units: seconds since the start of the test; `END` for what is let go because everything ends.
"""
Pair = tuple[int | None, int | None]
"""A place in what was expected, and one in what came; None: it has no counterpart there."""

_SMALL = 16
"""Batches of one moment up to which every way to pair them is weighed."""
_MOST_COUNTED = 50
"""Differences between two batches above which it does not matter how many there are."""
_MOST_COMPARED = 50_000
"""Batches that are compared beyond those of the same place; a verdict takes no longer for being large."""
_NEAREST = 50
"""Batches around its moment among which the one is looked for that a batch with matchers means."""


def pairs(expected: TimedBatches, came: TimedBatches, matching: Matching) -> list[Pair]:
    """Return each batch with its counterpart, in the order of moments.

    Batches of the same moment belong together, those with the fewest differences if there are several.
    What is left over belongs to what is equal to it at another moment. Where fewer batches are then left
    without a counterpart, it is the other way around: in a timeline that comes a second late, each batch
    is its own, and not the one before it. What is equal at its moment stays together in either case.
    """
    return _Pairing(expected, came, matching).pairs()


def as_batch(expected: JsonValue) -> JsonValue:
    """Return the batch that is meant: a message alone is one. That of a ``$count`` is not known."""
    is_batch = isinstance(expected, list) or matcher_in(expected) == "$count"
    return expected if is_batch else [expected]


def instant(moment: float) -> float:
    """Return a moment as it is told from others: as whole microseconds, or the end."""
    return END if moment == END else round(moment * SECOND)


class _Pairing:
    """Two timelines while their batches are paired; places stand for batches."""

    def __init__(self, expected: TimedBatches, came: TimedBatches, matching: Matching) -> None:
        self._expected = [as_batch(what) for _, what in expected]
        self._came: list[Batch] = [batch for _, batch in came]
        self._due = [instant(at) for at, _ in expected]
        self._came_at = [instant(at) for at, _ in came]
        self._matching = matching
        self._left = _MOST_COMPARED

    def pairs(self) -> list[Pair]:
        groups = self._groups()
        close = [pair for due, came in groups for pair in self._of_a_moment(due, came)]
        found = close
        if len(close) < min(len(self._due), len(self._came_at)):
            exact = [pair for pair in close if self._holds(*pair)]
            by_moment = [*close, *self._by_content(*self._without(close))]
            by_content = [*exact, *self._by_content(*self._without(exact))]
            by_content += self._at_the_same_moment(by_content, groups)
            found = max(by_moment, by_content, key=len)  # of the same length, the first
        alone: list[Pair] = [(i, None) for i in self._without(found)[0]]
        alone += [(None, j) for j in self._without(found)[1]]
        return sorted([*found, *alone], key=self._place)

    def _place(self, pair: Pair) -> tuple[float, bool, int]:
        due, came = pair
        if due is not None:
            return self._due[due], False, due
        assert came is not None
        return self._came_at[came], True, came

    def _groups(self) -> list[tuple[list[int], list[int]]]:
        """Return the batches of each moment: those expected and those that came."""
        groups: dict[float, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for i, at in enumerate(self._due):
            groups[at][0].append(i)
        for j, at in enumerate(self._came_at):
            groups[at][1].append(j)
        return [(due, came) for due, came in groups.values() if due and came]

    def _of_a_moment(self, due: list[int], came: list[int]) -> Iterable[tuple[int, int]]:
        """Return the pairs of one moment with the fewest differences: as many as there can be."""
        in_order = list(zip(due, came, strict=False))
        if len(due) == len(came) and (
            len(due) == 1 or all(self._holds(*pair) for pair in in_order)
        ):
            return in_order
        if len(due) <= _SMALL and len(came) <= _SMALL:
            return self._with_fewest_differences(due, came)
        equal = self._by_content(due, came)
        due, came = _rest(due, {i for i, _ in equal}), _rest(came, {j for _, j in equal})
        blocks = range(0, min(len(due), len(came)), _SMALL)
        rest = (
            self._with_fewest_differences(due[at : at + _SMALL], came[at : at + _SMALL])
            for at in blocks
        )
        return [*equal, *(pair for block in rest for pair in block)]

    def _with_fewest_differences(
        self, due: list[int], came: list[int]
    ) -> Iterator[tuple[int, int]]:
        if len(due) * len(came) > self._left:
            yield from zip(due, came, strict=False)
            return
        self._left -= len(due) * len(came)
        # Where it makes no difference, the order of the timelines decides.
        costs = [
            [self._distance(i, j) * _SMALL**2 + abs(row - column) for column, j in enumerate(came)]
            for row, i in enumerate(due)
        ]
        for row, column in cheapest(costs):
            yield due[row], came[column]

    def _at_the_same_moment(
        self, found: list[tuple[int, int]], groups: list[tuple[list[int], list[int]]]
    ) -> Iterator[tuple[int, int]]:
        """Yield pairs of the batches that have no counterpart yet."""
        known = {i for i, _ in found}, {j for _, j in found}
        for due, came in groups:
            left = _rest(due, known[0]), _rest(came, known[1])
            if left[0] and left[1]:
                yield from self._of_a_moment(*left)

    def _by_content(self, due: Iterable[int], came: Iterable[int]) -> list[tuple[int, int]]:
        """Return pairs of equal batches, each with the one that is nearest in time."""
        shelves: dict[Hashable, list[int]] = defaultdict(list)
        for j in sorted(came, key=self._came_at.__getitem__):
            shelves[_likeness(self._came[j])].append(j)
        found, unclear = list[tuple[int, int]](), list[int]()
        for i in due:
            if _has_matchers(self._expected[i]):
                unclear.append(i)
                continue
            alike = shelves.get(_likeness(self._expected[i]), [])
            if (near := self._nearest(i, alike, 2)) is not None:
                found.append((i, near))
        left = sorted(j for shelf in shelves.values() for j in shelf) if unclear else []
        left.sort(key=self._came_at.__getitem__)
        for i in unclear:
            if (near := self._nearest(i, left, _NEAREST)) is not None:
                found.append((i, near))
        return found

    def _nearest(self, due: int, came: list[int], most: int) -> int | None:
        """Take the nearest equal batch out of some that are in the order of time; it looks at a few."""
        at = self._due[due]
        middle = bisect_left(came, at, key=self._came_at.__getitem__)
        around = range(max(0, middle - most // 2), min(len(came), middle + most // 2))
        for place in sorted(around, key=lambda place: _apart(at, self._came_at[came[place]])):
            if self._left <= 0:
                return None
            self._left -= 1
            if self._holds(due, came[place]):
                return came.pop(place)
        return None

    def _without(self, found: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """Return the batches that have no counterpart."""
        known = list(found)
        due, came = {i for i, _ in known}, {j for _, j in known}
        return _rest(range(len(self._due)), due), _rest(range(len(self._came_at)), came)

    def _holds(self, due: int, came: int) -> bool:
        return self._matching.holds(self._expected[due], self._came[came])

    def _distance(self, due: int, came: int) -> int:
        return self._matching.distance(self._expected[due], self._came[came], _MOST_COUNTED)


def _rest(places: Iterable[int], known: set[int]) -> list[int]:
    return [place for place in places if place not in known]


def _apart(one: float, other: float) -> float:
    return 0.0 if one == other else abs(one - other)


def _has_matchers(expected: JsonValue) -> bool:
    if isinstance(expected, dict):
        return matcher_in(expected) is not None or any(map(_has_matchers, expected.values()))
    return isinstance(expected, list) and any(map(_has_matchers, expected))


def _likeness(value: JsonValue) -> Hashable:
    """Return what equal values have in common, and few others; fields may be written with ``$$``."""
    if isinstance(value, dict):
        return frozenset((field_named(key), _likeness(each)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(map(_likeness, value))
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, int | float):
        try:
            return format(float(value), ".6g")
        except OverflowError:
            return int(value)
    return str(value)
