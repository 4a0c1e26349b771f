"""The mapping that tells how long it was from one time to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Path as Place
from headrace.compiler.times.conversion import FAILURES, Conversion, elapsed_nanos, refusal
from headrace.compiler.times.forms import usual_form
from headrace.compiler.times.rfc3339 import timestamp
from headrace.operators.formula import Formula
from headrace.operators.mappings.mapping import Writing, present

_FORM = usual_form(has_zone=False)
_moment = Conversion(_FORM, timestamp).moment()

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


def _seconds(early: JsonValue, late: JsonValue) -> float:
    """Return the seconds between two times."""
    return elapsed_nanos(_moment(early), _moment(late)) / _NANOS_PER_SECOND


def _millis(early: JsonValue, late: JsonValue) -> int:
    """Return the whole milliseconds between two times, cut down."""
    return elapsed_nanos(_moment(early), _moment(late)) // _NANOS_PER_MILLI


_UNITS: dict[str, Callable[[JsonValue, JsonValue], float]] = {
    "seconds": _seconds,
    "millis": _millis,
}


class Elapsed(
    Writing,
    tag="elapsed",
    listed=46,
    elsewhere="age date_diff datediff duration latency time_diff timediff",
):
    """Tells how long it was from one time to another; below zero, if `until` was before.

    Both are RFC 3339, a date or seconds since 1970, as `time` writes them. Anything else fails the batch.
    """

    converts = True
    conversion = "reading"
    is_never_object = True
    takes_long = True

    from_: str = option(
        MessageField(), "Field with the time it began.", elsewhere="begin left since start"
    )
    until: str = option(MessageField(), "Field with the time it ended.", elsewhere="end right to")
    unit: str = option(
        Choice(
            *_UNITS,
            elsewhere={
                "seconds": "s sec secs second",
                "millis": "milli millisecond milliseconds ms",
            },
        ),
        "`seconds`: with a fraction; `millis`: whole milliseconds, cut down.",
        default="seconds",
        elsewhere="in units",
    )
    as_: str = option(MessageField(), "Field to write.", elsewhere="alias into name output target")

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """Both times."""
        return [(self.from_, ("from",)), (self.until, ("until",))]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the time between."""
        found = {path: present(path, message) for path in (self.from_, self.until)}
        for path, value in found.items():
            try:
                if value is not MISSING:
                    _moment(value)
            except FAILURES as cause:
                raise BatchFailed(refusal(cause, _FORM, value, path)) from cause
        if MISSING in found.values():
            return MISSING
        try:
            return _UNITS[self.unit](found[self.from_], found[self.until])
        except OverflowError as cause:
            raise BatchFailed(refusal(cause, _FORM, found[self.from_], self.from_)) from cause

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read both, and call what calculates."""
        names = [code.read(Path(each), optional=optional) for each in (self.from_, self.until)]
        between = code.constant(_UNITS[self.unit], "elapsed")
        different = [*dict.fromkeys(names)]
        are_times = code.constant(_are_times, "are_times")
        apart = f"{are_times}({', '.join(different)})" if len(different) > 1 else ""
        return Formula(f"{between}({', '.join(names)})", names, apart=apart, raises_on_none=True)


def _are_times(*values: JsonValue) -> bool:
    """Return whether every value that is there is a time."""
    try:
        for value in values:
            if value is not None:
                _moment(value)
    except FAILURES:
        return False
    return True
