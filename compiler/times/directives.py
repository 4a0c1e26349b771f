"""The directives that a format is written with, and a format taken apart.

Source: https://docs.python.org/3/library/datetime.html (format codes), which has them from POSIX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LONGEST_FORMAT = 200
"""Characters of a format."""
KEPT = 100
"""Compiled formats that are kept, for each of reading and writing: a config has some twice, and what a
message says may choose those of a script."""
MOST_DIGITS = 30
"""Digits of a fraction that are read; nine of them are kept."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""English, whatever the locale of the process: a config means the same everywhere."""


class FormatRefused(ValueError):
    """A format is none, or cannot do what it is wanted for; ``at`` is the index of what is wrong in it."""

    def __init__(self, text: str, at: int | None = None) -> None:
        super().__init__(text)
        self.at = at


class Directive(NamedTuple):
    """What one directive tells, and how that looks in a text."""

    part: str
    """The part of a time that it tells; two of one part exclude each other."""
    loose: str
    """A pattern of what it reads: a leading zero may be left out."""
    exact: str = ""
    """The same where a digit follows; empty where nobody can tell then where it ends."""
    starts_with_digit: bool = True
    ends_with_digit: bool = True


def _digits(part: str, count: int, least: int = 1) -> Directive:
    return Directive(part, f"([0-9]{{{least},{count}}})", f"([0-9]{{{count}}})")


def _word(part: str, *names: str) -> Directive:
    return Directive(part, f"((?i:{'|'.join(names)}))", "", False, False)


_DAY_OF_WEEK, _EPOCH = "day of the week", "seconds since 1970"

DIRECTIVES: Mapping[str, Directive] = {
    "Y": _digits("year", 4, 4),
    "y": _digits("year", 2, 2),
    "m": _digits("month", 2),
    "b": _word("month", *(name[:3] for name in MONTHS)),
    "B": _word("month", *MONTHS),
    "d": _digits("day", 2),
    "e": Directive("day", "( ?[0-9]|[0-9]{2})", "([ 0-9][0-9])"),
    "j": _digits("day of the year", 3),
    "H": _digits("hour", 2),
    "I": _digits("hour", 2),
    "p": _word("half of the day", "AM", "PM"),
    "M": _digits("minute", 2),
    "S": _digits("second", 2),
    "f": Directive("fraction", f"([0-9]{{1,{MOST_DIGITS}}})", "([0-9]{9})"),
    "z": Directive(
        "offset", "([Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)", starts_with_digit=False
    ),
    "a": _word(_DAY_OF_WEEK, *(name[:3] for name in DAYS)),
    "A": _word(_DAY_OF_WEEK, *DAYS),
    "s": Directive(_EPOCH, "([+-]?[0-9]{1,10})"),
    "%": Directive("", "%", "", False, False),
}
"""Every directive, by its letter. docs/times.md says what each means."""

FormatPieces = Sequence[str]
"""A format taken apart: literal texts, and directives as ``%Y``. A percent sign is the directive ``%%``."""

_PIECE = re.compile(r"%.?|[^%]+", re.DOTALL)


def pieces(pattern: str) -> FormatPieces:
    """Return a format taken apart.

    Raises: FormatRefused
    """
    if len(pattern) > LONGEST_FORMAT:
        raise FormatRefused(f"a format of {len(pattern):,} characters is too long")
    found = []
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        if piece == "%":
            raise FormatRefused("a '%' at its end: '%%' is a percent sign", match.start())
        if piece[0] == "%" and piece[1:] not in DIRECTIVES:
            raise FormatRefused(f"'{piece}' is no directive", match.start())
        found.append(piece)
    return found


def told(taken_apart: FormatPieces) -> Mapping[str, str]:
    """Return the parts of a time that a format tells, each with its directive.

    Raises: FormatRefused: two directives tell one part.
    """
    parts: dict[str, str] = {}
    for piece in taken_apart:
        if piece[0] == "%" and (part := DIRECTIVES[piece[1]].part):
            if part in parts:
                raise FormatRefused(f"'{parts[part]}' and '{piece}' both tell the {part}")
            parts[part] = piece
    return parts
