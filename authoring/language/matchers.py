"""Matchers: what stands in an expected value where not one value alone is right.

A matcher is an object with one key, which begins with ``$``. A field that is called so itself is written
with two: ``$$x`` is the field ``$x``.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from operator import is_
from typing import TypeGuard

from headrace.authoring.language.durations import A_DURATION, NotADuration, not_a_time, seconds
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Codes, Fault, Path, Spot, shown
from headrace.compiler.text.suggest import Others, nearest, one_of, others
from headrace.compiler.timestamps import rfc3339

CODES: Codes = {
    "not-a-matcher": "A word with '$' is no matcher, or takes another value than it is given.",
}

CLOSE = 1e-9
"""Two numbers are equal that differ by this part of their value, unless both are whole."""

_TYPES: Mapping[str, str] = {
    "null": "nil none",
    "boolean": "bool",
    "number": "decimal double float int integer numeric",
    "string": "str text",
    "list": "array",
    "object": "dict map record struct",
}
"""The types that JSON has, each with what it is called elsewhere."""
_TYPES_ELSEWHERE = others(_TYPES)
_NAMES: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    list: "list",
    dict: "object",
}
# Whoever writes a test answers for how long a pattern takes.
_compiled: Callable[[str], re.Pattern[str]] = lru_cache(maxsize=1000)(re.compile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """What may stand in the place of an expected value.

    ``refusal`` tells what is wrong with what it takes, from there on. ``holds`` says whether what was
    found is right, given what it takes and the start of the test.
    """

    takes: str
    summary: str
    refusal: Callable[[JsonValue], Fault | None]
    holds: Callable[[JsonValue, JsonValue, datetime], bool]
    elsewhere: str = ""


def faults(expected: JsonValue) -> Iterator[Fault]:
    """Yield what is wrong with the matchers in an expected value; paths begin at it."""
    return _faults(expected, ())


def literal(value: JsonValue) -> JsonValue:
    """Return what to write so that exactly ``value`` is expected: no field of it is taken for a matcher.

    It is the value itself if none could be.
    """
    if isinstance(value, dict):
        written = {
            f"${key}" if key[:1] == "$" else key: literal(each) for key, each in value.items()
        }
        is_same = written.keys() == value.keys() and all(map(is_, written.values(), value.values()))
        return value if is_same else written
    if isinstance(value, list):
        items = [*map(literal, value)]
        return value if all(map(is_, items, value)) else items
    return value


def matcher_in(expected: JsonValue) -> str | None:
    """Return the word of the matcher that an expected value is; None: it is none itself."""
    if isinstance(expected, dict) and len(expected) == 1:
        (key,) = expected
        return key if _is_word(key) else None
    return None


def field_named(key: str) -> str:
    """Return the field that a key of an expected object means."""
    return key[1:] if key[:2] == "$$" else key


def wall_at(start: datetime, text: str) -> datetime | None:
    """Return the wall time of a moment of a test; None: no calendar has it."""
    try:
        return start + timedelta(seconds=seconds(text))
    except OverflowError:
        return None


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Return whether a value is a number to JSON, where a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _faults(expected: JsonValue, path: Path) -> Iterator[Fault]:
    if isinstance(expected, list):
        for index, each in enumerate(expected):
            yield from _faults(each, (*path, index))
    elif isinstance(expected, dict):
        for key, each in expected.items():
            if not _is_word(key):
                yield from _faults(each, (*path, key))
            elif key not in MATCHERS:
                yield _unknown(key, (*path, key))
            elif len(expected) > 1:
                yield _beside(key, (*path, key))
            else:
                yield from _faults_of_argument(key, each, (*path, key))


def _faults_of_argument(word: str, argument: JsonValue, path: Path) -> Iterator[Fault]:
    fault = MATCHERS[word].refusal(argument)
    if fault is not None:
        yield replace(
            fault,
            message=f"'{word}' takes {fault.message or MATCHERS[word].takes}",
            found=shown(argument),
            expected=fault.expected or MATCHERS[word].takes,
            path=(*path, *fault.path),
        )
    elif word == "$has":
        for key, each in argument.items():
            if _is_word(key):
                yield replace(
                    _beside(key, (*path, key)), message=f"'$has' takes fields, not '{key}'"
                )
            else:
                yield from _faults(each, (*path, key))


def _unknown(word: str, path: Path) -> Fault:
    message = f"there is no matcher '{word}'; a field of this name is written '${word}'"
    fault = Fault("not-a-matcher", message, word, one_of(MATCHERS), path=path, on_key=True)
    return fault.meaning(nearest(word, MATCHERS, _elsewhere()))


def _beside(word: str, path: Path) -> Fault:
    return Fault(
        "not-a-matcher",
        f"'{word}' stands beside other keys, and a matcher is an object of its own",
        found=word,
        expected=f"'{word}' alone, or '${word}' for a field of this name",
        path=path,
        on_key=True,
    )


def _elsewhere() -> Others:
    return others({word: matcher.elsewhere for word, matcher in MATCHERS.items()})


def _is_word(key: str) -> bool:
    return key[:1] == "$" and key[:2] != "$$"


def _is_finite(value: JsonValue) -> TypeGuard[int | float]:
    return is_number(value) and (isinstance(value, int) or math.isfinite(value))


def _is_count(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _unless(is_right: Callable[[JsonValue], bool]) -> Callable[[JsonValue], Fault | None]:
    """Return what refuses everything but what is right, and has no more to say of it."""
    return lambda argument: None if is_right(argument) else Fault("not-a-matcher", "")


def _is_nothing(argument: JsonValue) -> bool:
    return argument is None or argument is True


def _is_distance(argument: JsonValue) -> bool:
    if not isinstance(argument, list) or len(argument) != 2 or not all(map(_is_finite, argument)):
        return False
    return bool(argument[1] >= 0)


def _no_type(argument: JsonValue) -> Fault | None:
    if argument is None or argument in (*_TYPES,):  # null needs no quotes, as YAML has it
        return None
    fault = Fault("not-a-matcher", "", expected=one_of(_TYPES))
    meant = nearest(argument, _TYPES, _TYPES_ELSEWHERE) if isinstance(argument, str) else None
    return fault.meaning(meant)


def _no_pattern(argument: JsonValue) -> Fault | None:
    if not isinstance(argument, str):
        return Fault("not-a-matcher", "")
    try:
        with warnings.catch_warnings(action="ignore"):
            _compiled(argument)
    except re.error as cause:
        spot = None if cause.colno is None else Spot(cause.lineno or 1, cause.colno)
        return Fault("not-a-matcher", f"a pattern: {cause.msg}", spot=spot)
    except (OverflowError, RecursionError) as cause:
        return Fault("not-a-matcher", f"a pattern: {cause}")
    return None


def _no_moment(argument: JsonValue) -> Fault | None:
    if isinstance(argument, str):
        with suppress(NotADuration):
            seconds(argument)
            return None
    return replace(not_a_time(argument), code="not-a-matcher", message="")


def _has_type(name: str | None, found: JsonValue, start: datetime) -> bool:
    return _NAMES.get(type(found), "number") == (name or "null")


def _is_near(argument: list[float], found: JsonValue, start: datetime) -> bool:
    value, tolerance = argument
    if not _is_finite(found):
        return False
    # Fractions, because a whole number may be larger than every double. What a double is off counts as
    # it does between equal numbers: 60.2 is within 0.1 of 60.1.
    slack = Fraction(CLOSE) * max(abs(Fraction(found)), abs(Fraction(value)))
    return abs(Fraction(found) - Fraction(value)) <= Fraction(tolerance) + slack


def _is_wall(text: str, found: JsonValue, start: datetime) -> bool:
    if not isinstance(found, str):
        return False
    try:
        return datetime.fromisoformat(rfc3339(found)) == wall_at(start, text)
    except ValueError:
        return False


def _is_like(pattern: str, found: JsonValue, start: datetime) -> bool:
    return isinstance(found, str) and _compiled(pattern).search(found) is not None


MATCHERS: Mapping[str, Matcher] = {
    "$any": Matcher(
        takes="nothing, or true",
        summary="Whatever is there.",
        refusal=_unless(_is_nothing),
        holds=lambda argument, found, start: True,
        elsewhere="$anything $ignore $whatever",
    ),
    "$has": Matcher(
        takes="an object of fields",
        summary="An object with at least these fields.",
        refusal=_unless(lambda argument: isinstance(argument, dict)),
        # Of an object it is the fields that are compared.
        holds=lambda argument, found, start: False,
        elsewhere="$contains $includes $partial $subset",
    ),
    "$type": Matcher(
        takes=one_of(_TYPES),
        summary="A value of this type.",
        refusal=_no_type,
        holds=_has_type,
        elsewhere="$is $kind",
    ),
    "$like": Matcher(
        takes="a pattern",
        summary="A text in which this pattern, a regular expression of Python, is found.",
        refusal=_no_pattern,
        holds=_is_like,
        elsewhere="$match $matches $pattern $re $regex $regexp",
    ),
    "$near": Matcher(
        takes="a list of a number and how far off it may be: [42, 0.1]",
        summary="A number that is no farther off than this.",
        refusal=_unless(_is_distance),
        holds=_is_near,
        elsewhere="$about $approx $around $close",
    ),
    "$at": Matcher(
        takes=A_DURATION,
        summary="The wall time of a moment of the test, as RFC 3339 writes it, in whichever offset.",
        refusal=_no_moment,
        holds=_is_wall,
        elsewhere="$moment $time $when",
    ),
    "$count": Matcher(
        takes="a whole number from 0",
        summary="A batch of so many messages, or a list of so many items.",
        refusal=_unless(_is_count),
        holds=lambda argument, found, start: isinstance(found, list) and len(found) == argument,
        elsewhere="$len $length $n $size",
    ),
}
"""The matchers by their words."""
