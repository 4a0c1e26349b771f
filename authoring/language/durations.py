"""Durations and moments as text: ``90s``, ``1m30s``, ``250ms``, and the end."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from marshmallow import ValidationError

from headrace.compiler.schema.fields import Text
from headrace.compiler.text.diagnostics import Codes, Fault, shown, spelled

CODES: Codes = {
    "not-a-time": "A duration, a moment, a span or a timestamp of a test is not written as one.",
}

END = math.inf
"""The moment at which everything ends, and what is held is let go."""
LONGEST_DAYS = 36_500
"""How long anything may last. So long, a double still tells one microsecond from the next."""

A_DURATION = "a duration such as 90s, 1m30s or 250ms"
A_MOMENT = "a moment such as 90s, +5s or end"

SECOND = 1_000_000
"""Microseconds, which everything is counted in."""
_UNITS = {
    "d": 86_400 * SECOND,
    "h": 3_600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 1_000,
    "us": 1,
}
LONGEST = LONGEST_DAYS * _UNITS["d"]
"""The same in microseconds."""


def as_start(moment: datetime) -> datetime:
    """Return a moment that a play may start at: so far from the ends of the calendar that each has a wall.

    Raises:
        ValueError: it is not, or has no offset.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no offset from UTC")
    try:
        moment.astimezone(UTC) + timedelta(days=LONGEST_DAYS)
    except OverflowError as cause:
        raise ValueError(f"{moment.isoformat()} is too near to an end of the calendar") from cause
    return moment


_FORM = re.compile(
    "(?=[0-9])"
    + "".join(rf"(?:(?P<{unit}>[0-9]{{1,18}}(?:\.[0-9]{{1,9}})?){unit})?" for unit in _UNITS)
)
_WORDS = {
    word: unit
    for unit, words in {
        "d": "day days",
        "h": "hour hours hr hrs",
        "m": "min mins minute minutes",
        "s": "sec secs second seconds",
        "ms": "msec msecs millis milliseconds",
        "us": "µs μs usec usecs micros microseconds",
    }.items()
    for word in words.split()
}
_LETTERS = re.compile("[a-zµμ]+")
_MOST_LETTERS = 40
"""A longer text is no slip of a duration."""


class NotADuration(ValueError):
    """A text is no duration, or a longer one than anything may last."""


def microseconds(text: str) -> int:
    """Return how many microseconds a duration has.

    Each unit may be there once, the larger before the smaller: ``1h30m``, ``1.5h``, ``250ms``.

    Raises:
        NotADuration: it is written in another way, or longer than `LONGEST_DAYS`.
    """
    # Python callers may hand in a number: of what, nobody knows.
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise NotADuration(f"{shown(text)} is no duration such as 90s, 1m30s or 250ms")
    parts = (Decimal(count) * _UNITS[unit] for unit, count in found.groupdict().items() if count)
    whole = round(sum(parts, Decimal()))
    if whole > LONGEST:
        raise NotADuration(f"{shown(text)} is longer than {LONGEST_DAYS:,} days")
    return whole


def seconds(text: str) -> float:
    """Return how many seconds a duration has, to the microsecond.

    Raises:
        NotADuration: as `microseconds` does.
    """
    return microseconds(text) / SECOND


def told(at: float) -> str:
    """Return a moment, or a duration, as people write it: ``0s``, ``1m30s``, ``end``.

    `seconds` reads it back.
    """
    if at == END:
        return "end"
    rest, said = round(at * SECOND), ""
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            said += f"{count}{unit}"
    return said or "0s"


def not_a_time(found: Any, wanted: str = A_DURATION) -> Fault:
    """Return the fault of something that is no duration, or no moment, with what is probably meant."""
    text = shown(found)
    if isinstance(found, str) and _FORM.fullmatch(found.removeprefix("+")):
        wanted = f"at most {LONGEST_DAYS:,} days"
    fault = Fault("not-a-time", f"expected {wanted}, found {text}", text, wanted)
    return fault.meaning(_meant(found))


def _meant(found: Any) -> str | None:
    """Return the duration that something is, but for its spelling: ``5 sec``, ``5``."""
    if type(found) is int or type(found) is float:
        found = spelled(found)
    if not isinstance(found, str) or len(found) > _MOST_LETTERS:
        return None
    plain = "".join(found.lower().split())
    sign, bare = ("+", plain[1:]) if plain.startswith("+") else ("", plain)
    meant = _LETTERS.sub(lambda word: _WORDS.get(word[0], word[0]), bare)
    meant += "s" if bare[-1:].isdigit() else ""
    try:
        microseconds(meant)
    except NotADuration:
        return None
    return sign + meant if sign + meant != found else None


class Duration(Text):
    """How long something lasts: ``90s``, ``1m30s``, ``250ms``."""

    type_name = "duration"
    expects = A_DURATION

    def __init__(self, *, above_zero: bool = False) -> None:
        self.is_above_zero = above_zero
        super().__init__()

    def wrong(self, value: Any) -> ValidationError:
        """Return the error of what is no text; of a number, with its unit."""
        return ValidationError([not_a_time(value)])

    def read(self, value: Any) -> str:
        """Take a duration; it stays the text that it is."""
        text: str = super().read(value)
        try:
            micros = microseconds(text)
        except NotADuration as cause:
            raise ValidationError([not_a_time(text)]) from cause
        if self.is_above_zero and not micros:
            said = f"expected a duration above 0s, found {shown(text)}"
            raise ValidationError([Fault("out-of-range", said, shown(text), "a duration above 0s")])
        return text
