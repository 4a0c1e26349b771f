"""What to expect instead, when something else came: matchers that hold stay as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from headrace.authoring.language.durations import LONGEST_DAYS, told
from headrace.authoring.language.matchers import field_named, is_number, literal, matcher_in
from headrace.authoring.verdicts.matching import Matching
from headrace.authoring.verdicts.pairing import TimedBatches, as_batch, pairs
from headrace.compiler.delivery import JsonValue
from headrace.compiler.timestamps import rfc3339

_AHEAD = 16
"""Items of a list that are looked at for the one that matches."""


class Renewal:
    """Writes expected values again as others that were found.

    Units: moments are seconds since the start of the test, or `END`.
    """

    def __init__(self, start: datetime) -> None:
        """Take the wall time at which the test begins, with its offset."""
        self._start = start
        self._matching = Matching(start)

    def timeline(
        self, expected: TimedBatches, came: TimedBatches
    ) -> Iterator[tuple[float, JsonValue]]:
        """Yield the batches that came, each as it is to be expected."""
        table = pairs([(at, as_batch(what)) for at, what in expected], came, self._matching)
        counterparts = {there: wanted for wanted, there in table if wanted is not None}
        # What is left over on both sides is taken for the same, in the order of time.
        left = [wanted for wanted, there in table if wanted is not None and there is None]
        alone = [there for wanted, there in table if wanted is None]
        counterparts |= dict(zip(alone, left, strict=False))
        for place, (at, batch) in enumerate(came):
            wanted = counterparts.get(place)
            yield at, self._batch(None if wanted is None else expected[wanted][1], batch)

    def values(
        self, expected: TimedBatches, held: TimedBatches
    ) -> Iterator[tuple[float, JsonValue]]:
        """Yield the values that were looked at in turn, as a bucket is."""
        for (at, wanted), (_, value) in zip(expected, held, strict=True):
            yield at, self.value(wanted, value)

    def value(self, expected: JsonValue, found: JsonValue) -> JsonValue:
        """Return what to expect so that ``found`` matches, as like to what was expected as can be."""
        if self._matching.holds(expected, found):
            return expected
        if isinstance(expected, list) and isinstance(found, list):
            return [*self._items(expected, found)]
        if not isinstance(expected, dict):
            return literal(found)
        if (word := matcher_in(expected)) is not None:
            return self._matcher(word, expected[word], found)
        if not isinstance(found, dict):
            return literal(found)
        kept = self._fields(expected, found)
        known = set(map(field_named, expected))
        return kept | literal({name: found[name] for name in found if name not in known})

    def _batch(self, expected: JsonValue, batch: JsonValue) -> JsonValue:
        """Return a batch, which is written as its message if that is alone and was written so."""
        if expected is None:
            renewed = literal(batch)
        elif self._matching.holds(as_batch(expected), batch):
            return expected
        else:
            renewed = self.value(as_batch(expected), batch)
        is_alone = isinstance(renewed, list) and len(renewed) == 1
        return renewed[0] if is_alone and not isinstance(renewed[0], list) else renewed

    def _fields(
        self, expected: dict[str, JsonValue], found: dict[str, JsonValue]
    ) -> dict[str, JsonValue]:
        return {
            key: self.value(wanted, found[name])
            for key, wanted in expected.items()
            if (name := field_named(key)) in found
        }

    def _items(self, expected: list[JsonValue], found: list[JsonValue]) -> Iterator[JsonValue]:
        """Yield the items of a list; one that was put before others leaves theirs to them.

        Of lists of one length each item has its counterpart at its place, as where differences are told.
        """
        if len(expected) == len(found):
            yield from map(self.value, expected, found)
            return
        place = 0
        for index, item in enumerate(found):
            left = len(expected) - place, len(found) - index
            near = expected[place : place + _AHEAD]
            matching = (at for at, wanted in enumerate(near) if self._matching.holds(wanted, item))
            skipped = next(matching, 0 if left[0] >= left[1] else None)
            if skipped is None or not near:
                yield literal(item)
            else:
                yield self.value(near[skipped], item)
                place += skipped + 1

    def _matcher(self, word: str, argument: JsonValue, found: JsonValue) -> JsonValue:
        """Return what to expect in the place of a matcher that does not hold."""
        if word == "$has" and isinstance(found, dict):
            return {word: self._fields(argument, found)}
        if word == "$count" and isinstance(found, list):
            return {word: len(found)}
        if word == "$near" and is_number(found):
            return {word: [found, argument[1]]}
        if word == "$at" and (moment := self._moment(found)) is not None:
            return {word: moment}
        return literal(found)

    def _moment(self, found: JsonValue) -> str | None:
        """Return the moment of the test that a wall time is; None: it is none."""
        if not isinstance(found, str):
            return None
        try:
            since = datetime.fromisoformat(rfc3339(found)) - self._start
        except ValueError:
            return None
        return told(since.total_seconds()) if 0 <= since.days < LONGEST_DAYS else None
