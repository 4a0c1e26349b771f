"""Reading a text by a format: the source of a function is written, and compiled.

The text has to fit whole. What a format takes is finite, so the pattern of none can be made to work long,
however long the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from headrace.compiler.code import compile_source
from headrace.compiler.times.directives import (
    DIRECTIVES,
    KEPT,
    MONTHS,
    FormatPieces,
    FormatRefused,
    pieces,
    told,
)
from headrace.compiler.times.numbers import moment_of_seconds

ClockReading = tuple[datetime, int, timedelta | None]
"""A clock in whole seconds, nanoseconds, and the offset; None where the text has none.

A leap second is the second before it and `LEAP` nanoseconds or more: whether there can be one is known
once the offset is.
"""
ReadTime = Callable[[Any], ClockReading]
"""Reads one value. Raises ValueError for what is no such time, TypeError for what is no such value."""

LEAP = 1_000_000_000

_ISO_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
"""Those that databases and programs write most, whose texts `fromisoformat` takes as they are."""
_ISO = "{year}-{month}-{day}T{hour}:{minute}:{second}"
_PADDED = "{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute:0>2}:{second:0>2}"
_MONTHS = {
    cased: f"{number:02}"
    for number, name in enumerate(MONTHS, 1)
    for short in (name[:3], name)
    for cased in (short, short.upper(), short.lower())
}


@lru_cache(maxsize=KEPT)
def reader(pattern: str) -> ReadTime:
    """Return the function that reads texts of a format.

    Raises: FormatRefused: it tells no day, or cannot be read without guessing.
    """
    taken_apart = pieces(pattern)
    parts = told(taken_apart)
    _check(parts)
    namespace = {
        "datetime": datetime,
        "fromisoformat": datetime.fromisoformat,
        "match": re.compile(_expression(taken_apart), re.ASCII).fullmatch,
        "timedelta": timedelta,
        "century": century,
        "day_of_year": day_of_year,
        "hour_of": hour_of,
        "moment_of_seconds": moment_of_seconds,
        "month_of": month_of,
        "nanos_of": nanos_of,
        "offset_of": offset_of,
    }
    source = _source(parts, is_iso=pattern in _ISO_FORMATS)
    return compile_source("read", source, namespace, f"format {pattern}")


def has_offset(pattern: str) -> bool:
    """Return whether the texts of a format say their offset.

    Raises: FormatRefused
    """
    return not {"offset", "seconds since 1970"}.isdisjoint(told(pieces(pattern)))


def _check(parts: Mapping[str, str]) -> None:
    """Raise `FormatRefused` unless the parts make a moment."""
    if "seconds since 1970" in parts:
        if others := parts.keys() - {"seconds since 1970", "fraction", "day of the week"}:
            raise FormatRefused(
                f"'%s' is the whole time: '{parts[min(others)]}' cannot be beside it"
            )
        return
    if "day of the year" in parts and (other := parts.get("month") or parts.get("day")):
        raise FormatRefused(f"'%j' and '{other}' both tell the day")
    missing = [
        words
        for part, words in (
            ("year", "no year ('%Y' or '%y')"),
            ("month", "no month ('%m', '%b' or '%B')"),
            ("day", "no day ('%d' or '%e')"),
        )
        if part not in parts and not (part != "year" and "day of the year" in parts)
    ]
    if missing:
        raise FormatRefused("it has " + " and ".join(missing))
    if (parts.get("hour") == "%I") != ("half of the day" in parts):
        raise FormatRefused("'%I' and '%p' go together: '%H' is the hour of the whole day")
    for part, before in (("minute", "hour"), ("second", "minute"), ("fraction", "second")):
        if part in parts and before not in parts:
            raise FormatRefused(f"'{parts[part]}' without a directive for the {before}")


def _expression(taken_apart: FormatPieces) -> str:
    """Return the pattern of the texts that a format takes. Where digits meet, none may be left out."""
    said = []
    for before, piece, after in zip(
        ["", *taken_apart], taken_apart, [*taken_apart[1:], ""], strict=False
    ):
        if piece[0] != "%":
            said.append(re.escape(piece))
            continue
        directive = DIRECTIVES[piece[1]]
        is_before_digit = directive.ends_with_digit and _has_digit(after, 0)
        if is_before_digit and not directive.exact:
            raise FormatRefused(f"nobody can tell where '{piece}' ends: a digit may follow it")
        is_behind_digit = directive.part != "fraction" and _has_digit(before, -1)
        is_exact = is_before_digit or (is_behind_digit and directive.exact)
        said.append(directive.exact if is_exact else directive.loose)
    return "".join(said)


def _has_digit(piece: str, end: int) -> bool:
    """Return whether what a piece stands for may begin (0), or end (-1), with a digit."""
    if piece[:1] != "%":
        return piece != "" and piece[end].isdigit()
    directive = DIRECTIVES[piece[1]]
    return directive.ends_with_digit if end else directive.starts_with_digit


_NAMES = {
    "%Y": "year", "%y": "short_year", "%m": "month", "%b": "month_name", "%B": "month_name", "%d": "day",
    "%e": "day", "%j": "day_number", "%H": "hour", "%I": "half_hour", "%p": "half", "%M": "minute",
    "%S": "second", "%f": "fraction", "%z": "offset", "%a": "_", "%A": "_", "%s": "seconds",
}  # fmt: skip
"""What the source calls what a directive has read."""


def _source(parts: Mapping[str, str], *, is_iso: bool) -> str:
    """Return the source of the function that reads texts of these parts, in their order."""
    given = set(parts.values())
    at_once = [
        "if len(text) == 19 and match(text) is not None:",
        "    try:",
        "        return fromisoformat(text), 0, None",
        "    except ValueError:  # a leap second, or a day that is in no calendar",
        "        pass",
    ]
    lines = [
        *(at_once if is_iso else []),
        "found = match(text)",
        "if found is None:",
        "    raise ValueError",
        f"({', '.join(_NAMES[each] for each in parts.values())},) = found.groups()",
    ]
    nanos = "nanos_of(fraction)" if "%f" in given else "0"
    if "%s" in given:
        lines.append(f"return moment_of_seconds(seconds, {nanos})")
        return _function(lines)
    if "%y" in given:
        lines.append("year = century(short_year)")
    if "%b" in given or "%B" in given:
        lines.append("month = month_of(month_name)")
    if "%e" in given:
        lines.append("day = day.strip()")
    if "%j" in given:
        lines.append("month, day = day_of_year(year, day_number)")
    if "%I" in given:
        lines.append("hour = hour_of(half_hour, half)")
    for part, directive in (("hour", "%H"), ("minute", "%M"), ("second", "%S")):
        if directive not in given and not (part == "hour" and "%I" in given):
            lines.append(f"{part} = '00'")
    offset = "offset_of(offset)" if "%z" in given else "None"
    if "%S" in given:
        lines += [
            f"nanos = {nanos}",
            "if second == '60':",
            f"    second, nanos = '59', nanos + {LEAP}",
        ]
        nanos = "nanos"
    lines += [
        f"iso = f'{_ISO}'",
        "if len(iso) != 19:",
        f"    iso = f'{_PADDED}'",
        f"return fromisoformat(iso), {nanos}, {offset}",
    ]
    return _function(lines)


def _function(lines: list[str]) -> str:
    return "\n".join(["def read(text):", *(f"    {line}" for line in lines), ""])


def century(year: str) -> str:
    """Return a year of two digits as POSIX has it."""
    return ("19" if year >= "69" else "20") + year


def month_of(name: str) -> str:
    """Return the number of a month, by its name or its first letters in whatever case."""
    return _MONTHS.get(name) or _MONTHS[name.lower()]


def day_of_year(year: str, number: str) -> tuple[str, str]:
    """Return month and day of a day of a year."""
    first = datetime.fromisoformat(f"{year}-01-01")
    day = first + timedelta(days=int(number) - 1)
    if day.year != first.year:
        raise ValueError
    return f"{day.month:02}", f"{day.day:02}"


def hour_of(hour: str, half: str) -> str:
    """Return the hour of the day of a clock with twelve hours."""
    number = int(hour)
    if not 1 <= number <= 12:
        raise ValueError
    return f"{number % 12 + 12 * (half in 'PMpm'):02}"


def nanos_of(fraction: str) -> int:
    """Return the digits of a fraction as nanoseconds, cut after the ninth."""
    return int(fraction[:9].ljust(9, "0"))


@lru_cache(maxsize=6_000)
def offset_of(text: str) -> timedelta:
    """Return an offset from UTC; there are 5,810 different ones."""
    if text in "Zz":
        return timedelta(0)
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if text[0] == "-" else offset
