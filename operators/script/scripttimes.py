"""Times in scripts: the formats and zones of the mapping `time`, as functions of a script.

What a message says may choose a format and a zone, so only so many compiled ones are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.times.conversion import FAILURES, OUTSIDE, Conversion
from headrace.compiler.times.directives import FormatRefused
from headrace.compiler.times.forms import TimeForm, form_of, usual_form
from headrace.compiler.times.notatime import NotATime
from headrace.compiler.times.numbers import UNITS
from headrace.compiler.times.rfc3339 import timestamp
from headrace.compiler.times.timereading import has_offset
from headrace.compiler.times.timewriting import number_writer, writer
from headrace.compiler.times.zones import UnknownZone, Zone, zone_named
from headrace.operators.script.refusing import CallRefused, kind

KEPT = 100
"""Formats with their zones that are kept compiled, for each of the two functions."""

_MILLIS = form_of(["millis"])


class _Compiled(NamedTuple):
    form: TimeForm
    convert: Callable[[Any], Any]


def parse_time(value: JsonValue, pattern: JsonValue, zone: JsonValue) -> int:
    """Return the milliseconds since 1970 of a time that is written by a format; () is the usual form.

    Raises:
        CallRefused: the time, the format or the zone is none.
    """
    compiled = _made("parse_time", _reading, pattern, zone)
    return _converted("parse_time", compiled, value)  # type: ignore[no-any-return]


def format_time(millis: JsonValue, pattern: JsonValue, zone: JsonValue) -> str:
    """Return milliseconds since 1970 by a format, on the clock of a zone; () is RFC 3339, and UTC.

    Raises:
        CallRefused: the time, the format or the zone is none.
    """
    compiled = _made("format_time", _writing, pattern, zone)
    if type(millis) not in NUMBERS:
        raise CallRefused(f"'format_time' takes milliseconds since 1970, not {kind(millis)}")
    return _converted("format_time", compiled, millis)  # type: ignore[no-any-return]


@lru_cache(maxsize=KEPT)
def _reading(pattern: str | None, zone: str | None) -> _Compiled:
    stands = None if zone is None else zone_named(zone)
    if pattern is None:
        form = usual_form(has_zone=stands is not None)
    else:
        form = form_of([pattern])
        if stands is None and pattern not in UNITS and not has_offset(pattern):
            raise FormatRefused("without an offset in the format, a zone has to be named")
    return _Compiled(form, Conversion(form, number_writer("millis"), stands).compiled())


@lru_cache(maxsize=KEPT)
def _writing(pattern: str | None, zone: str | None) -> _Compiled:
    shown: Zone | None = None if zone is None else zone_named(zone)
    write = timestamp if pattern is None else writer(pattern)
    return _Compiled(_MILLIS, Conversion(_MILLIS, write, to_zone=shown).compiled())


def _made(
    function: str,
    make: Callable[[str | None, str | None], _Compiled],
    pattern: JsonValue,
    zone: JsonValue,
) -> _Compiled:
    for name, given in (("format", pattern), ("zone", zone)):
        if given is not None and not isinstance(given, str):
            raise CallRefused(f"'{function}' takes a string or () as its {name}, not {kind(given)}")
    try:
        return make(pattern, zone)
    except UnknownZone as cause:
        raise CallRefused(
            f"'{function}' knows no such zone: it takes names of the IANA list"
        ) from cause
    except FormatRefused as cause:
        raise CallRefused(f"'{function}' cannot do that format: {cause}") from cause


def _converted(function: str, compiled: _Compiled, value: JsonValue) -> Any:
    try:
        return compiled.convert(value)
    except FAILURES as cause:
        if type(value) not in compiled.form.types:
            said = f"takes {compiled.form.expected}, not {kind(value)}"
        elif isinstance(cause, NotATime):
            said = f"was given a time that {cause}"
        elif isinstance(cause, OverflowError):
            said = f"was given a time that {OUTSIDE}"
        else:
            said = "was given what is no time of that form"
        raise CallRefused(f"'{function}' {said}") from cause
