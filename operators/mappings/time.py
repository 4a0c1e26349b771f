"""The mapping that reads, moves and writes a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, MessageField
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.structures import OneOrListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.diagnostics import Path as Place
from headrace.compiler.times.conversion import FAILURES, Conversion, refusal
from headrace.compiler.times.forms import TimeForm, form_of, usual_form
from headrace.compiler.times.numbers import OTHER_UNITS, UNITS
from headrace.compiler.times.rfc3339 import Write, date, timestamp
from headrace.compiler.times.timefields import ReadFormat, WrittenFormat, ZoneName
from headrace.compiler.times.timereading import has_offset
from headrace.compiler.times.timewriting import number_writer, writer
from headrace.compiler.times.truncating import WORDS, truncation
from headrace.compiler.times.zones import SHIFTS, zone_named
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal, Operand
from headrace.operators.mappings.mapping import OfField, present

MOST_FORMATS = 8
"""Formats that one mapping tries, in order."""

_WRITTEN: dict[str, Callable[[], Write]] = {
    "timestamp": lambda: timestamp,
    "date": lambda: date,
} | {unit: (lambda unit=unit: number_writer(unit)) for unit in UNITS}  # type: ignore[misc]


class Time(
    OfField,
    tag="time",
    listed=45,
    elsewhere="date_format datetime parse_date parse_time parse_timestamp strftime strptime timestamp "
    "ts_format ts_parse ts_strftime ts_strptime",
):
    """Reads a time, moves it, and writes it in another form, zone or unit.

    A value that is no such time fails the batch. [Times](../../times.md) has the directives of a format,
    and what becomes of clocks that come twice or never.
    """

    converts = True
    conversion = "reading"
    is_never_object = True
    takes_long = True

    from_: str = option(
        MessageField(), "Field that holds the time.", elsewhere="field key path source"
    )
    format: str | tuple[str, ...] | None = option(
        OneOrListOf(ReadFormat(), at_most=MOST_FORMATS),
        "How it is written: a format of directives, a list of up to 8 that are tried in order, or "
        "`seconds`, `millis`, `micros` or `nanos` since 1970. When absent: RFC 3339, `YYYY-MM-DD` or "
        "seconds since 1970.",
        default=None,
        elsewhere="from_format input_format layout pattern",
    )
    zone: str | None = option(
        ZoneName(),
        "Zone whose clock it is, where the text has no offset. Without it such a text is refused; a date "
        "in the usual form is one of UTC.",
        default=None,
        elsewhere="from_zone input_zone timezone tz",
    )
    at_shift: str = option(
        Choice(
            *SHIFTS,
            elsewhere={
                "before": "compatible earlier first",
                "after": "later last second",
                "refuse": "error fail raise reject",
            },
        ),
        "Which offset counts for a clock that comes twice or never, where clocks are changed: the one "
        "before the change or after it; or none, and the batch fails.",
        default="before",
        elsewhere="ambiguous dst fold on_shift",
    )
    plus: Operand | None = option(
        VariantOf(Operand),
        "Seconds to add to it; a fraction counts to the microsecond. Missing, the whole value is.",
        default=None,
        elsewhere="add offset shift",
    )
    to_zone: str | None = option(
        ZoneName(),
        "Zone whose clock shows it; that of the text when absent.",
        default=None,
        elsewhere="into_zone output_zone to_timezone to_tz",
    )
    truncate: str | None = option(
        Choice(*WORDS),
        "Cuts it down to the beginning of a unit, by the clock that shows it. Weeks begin on Monday.",
        default=None,
        elsewhere="floor round round_down trunc",
    )
    to: str = option(
        Choice(
            *_WRITTEN,
            elsewhere={
                "timestamp": "datetime iso iso8601 rfc3339 string text",
                "date": "day",
                "seconds": "epoch sec secs second unix unix_seconds unixtime",
            }
            | {unit: words for unit, words in OTHER_UNITS.items() if unit != "seconds"},
        ),
        "What is written: RFC 3339, `YYYY-MM-DD`, or a whole number since 1970, cut down.",
        default="timestamp",
        elsewhere="type unit",
    )
    to_format: str | None = option(
        WrittenFormat(),
        "Format to write it in, in place of `to`.",
        default=None,
        elsewhere="into_format output_format",
    )
    as_: str | None = option(
        MessageField(),
        "Field to write; the last segment of `from` when absent.",
        default=None,
        elsewhere="alias into name output target",
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written, as it is, when the field is missing.", default=None
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse formats whose texts would stand nowhere, and settings that nothing would come of."""
        formats = self._formats
        for index, each in enumerate(formats):
            place: Place = ("format", index) if isinstance(self.format, tuple) else ("format",)
            if each in UNITS and len(formats) > 1:
                yield Fault(
                    "conflict",
                    f"'{each}' stands alone: a number is of one unit",
                    found=each,
                    expected="formats of directives in a list",
                    path=place,
                )
            elif each not in UNITS and self.zone is None and not has_offset(each):
                yield Fault(
                    "conflict",
                    f"'{each}' has no offset, so nobody can tell where its clock stands",
                    found=each,
                    expected="a 'zone' beside it, such as UTC, or %z in it",
                    path=place,
                )
        if self.to_format is not None and self.to != "timestamp":
            yield Fault(
                "conflict",
                "'to' and 'to_format' both say what is written",
                expected="one of them",
                path=("to",),
            )
        if self.zone is not None and formats and all(map(_says_where, formats)):
            yield Fault(
                "conflict",
                "'zone' decides nothing: the format says where its clock stands",
                found=self.zone,
                expected="no 'zone'; 'to_zone' is where it is shown",
                path=("zone",),
            )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The time, and what is added to it."""
        added = None if self.plus is None else self.plus.path
        return [
            (self.from_, ("from",)),
            *([] if added is None else [(added, ("plus", "field"))]),
        ]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the time as it is written."""
        found = present(self.from_, message)
        plus = [] if self.plus is None else [self._added(self.plus, message)]
        if found is MISSING or MISSING in plus:
            return MISSING
        try:
            return self._convert(found, *plus)
        except FAILURES as cause:
            raise BatchFailed(refusal(cause, self._form, found, self.from_)) from cause

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """ReadTime it and call the conversion."""
        convert = code.constant(self._convert, "time")
        names = [code.read(Path(self.from_), optional=optional)]
        arguments, apart = [*names], ""
        if self.plus is not None:
            arguments.append(self.plus.source(code, "plus", optional=optional))
        if self.plus is not None and self.plus.path is not None:
            names.append(arguments[-1])
            apart = f"({arguments[-1]} is None or {code.is_number(arguments[-1])})"
        return Formula(
            f"{convert}({', '.join(arguments)})", names, apart=apart, raises_on_none=True
        )

    def _added(self, plus: Operand, message: JsonValue) -> Any:
        added = plus.constant if plus.path is None else present(plus.path, message)
        if added is not MISSING and type(added) not in NUMBERS:
            raise BatchFailed(f"field '{plus.path}' is {json_type(added)}: expected a number")
        return added

    @property
    def _formats(self) -> Sequence[str]:
        if self.format is None:
            return ()
        return self.format if isinstance(self.format, tuple) else (self.format,)

    @cached_property
    def _form(self) -> TimeForm:
        formats = self._formats
        return form_of(formats) if formats else usual_form(has_zone=self.zone is not None)

    @cached_property
    def _convert(self) -> Callable[..., JsonValue]:
        written = _WRITTEN[self.to]() if self.to_format is None else writer(self.to_format)
        return Conversion(
            self._form,
            written,
            None if self.zone is None else zone_named(self.zone),
            self.at_shift,
            None if self.to_zone is None else zone_named(self.to_zone),
            None if self.truncate is None else truncation(self.truncate),
        ).compiled()


def _says_where(form: str) -> bool:
    """Return whether a form leaves a zone nothing to say."""
    return form in UNITS or has_offset(form)
