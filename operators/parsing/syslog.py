"""The preset `syslog`: RFC 5424, else RFC 3164 as it is written in practice.

Source: https://www.rfc-editor.org/rfc/rfc5424, section 6; https://www.rfc-editor.org/rfc/rfc3164, section 4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.times.numbers import EPOCH, UTC
from headrace.compiler.times.rfc3339 import timestamp
from headrace.compiler.times.zones import Zone
from headrace.compiler.timestamps import rfc3339
from headrace.operators.parsing.escapes import unescaped
from headrace.operators.parsing.form import MOST_NAMES, Fields, TextForm
from headrace.operators.parsing.months import MONTH_DIGITS
from headrace.operators.parsing.values import FieldValues, Mismatch

# Nothing is given back (`++`): each character is looked at once.
_PARAMETER = r'([^ =\]"]{1,32}+)="([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_ELEMENT = rf"\[([^ =\]\"]{{1,32}}+)((?: {_PARAMETER})*+)\]"
_IS_5424 = re.compile(r"<[0-9]{1,3}>1 ")
_5424 = re.compile(
    r"<([0-9]{1,3})>1 ([^ ]++) ([^ ]++) ([^ ]++) ([^ ]++) ([^ ]++) "
    r'(?:-|((?:\[[^"\]\[]++(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\]\[]*+)*+\])++))(?: (.*+))?+',
    re.DOTALL,
)
_3164 = re.compile(
    r"(?:<([0-9]{1,3})>)?+"
    r"(?:([A-Z][a-z]{2}) ([ 0-9][0-9]) ([0-9]{2}):([0-9]{2}):([0-9]{2})|([0-9]{4}-[0-9T:.+Zz-]++)) "
    r"([^ ]++) (?:([^][: ]++)(?:\[([^]]*+)\])?+: ?+)?+(.*+)",
    re.DOTALL,
)
_ELEMENTS, _PARAMETERS = re.compile(_ELEMENT, re.DOTALL), re.compile(_PARAMETER, re.DOTALL)
_MEANT = {'\\"': '"', "\\]": "]"}

FACILITIES = (
    *(
        "kern",
        "user",
        "mail",
        "daemon",
        "auth",
        "syslog",
        "lpr",
        "news",
        "uucp",
        "cron",
        "authpriv",
    ),
    *("ftp", "ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8))),
)
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_DAY_SECONDS = 86_400
_EPOCH_DAY = EPOCH.toordinal()
_SURELY_NEAREST_DAYS = 180


class Syslog(TextForm):
    """A line of syslog: RFC 5424, else RFC 3164, there also without a priority, as files have it.

    RFC 3164 tells no year and no offset: the year is the one nearest to now, the time is that of a zone.
    """

    word = "syslog"
    knows_types = True
    tells_no_zone = True
    usual_nulls = ("-",)
    names: Sequence[str] = (
        *("facility", "severity", "severity_code", "at", "host", "app", "pid", "msgid", "data"),
        "message",
    )

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what reads a line."""
        nulls, zone = values.nulls, values.zone

        def read(text: str) -> Fields:
            if _IS_5424.match(text):
                found = _5424.fullmatch(text)
                if found is None:
                    raise Mismatch
                priority, written, host, app, pid, msgid, elements, message = found.groups()
                at = None if written == "-" else _moment(written)
                data = None if elements is None else _elements(elements)
                message = message and message.removeprefix("\ufeff")
            else:
                found = _3164.fullmatch(text)
                if found is None:
                    raise Mismatch
                priority, month, day, hour, minute, second, written, host, app, pid, message = (
                    found.groups()
                )
                clock = ctx.clock
                if month is None:
                    at = _moment(written)
                else:
                    digits = map(int, (MONTH_DIGITS.get(month, "0"), day, hour, minute, second))
                    at = _nearest(clock.seconds(), zone, *digits)
                msgid = data = None
            facility, severity = _named(priority)
            return {
                "facility": facility,
                "severity": None if severity is None else SEVERITIES[severity],
                "severity_code": severity,
                "at": at,
                "host": None if host in nulls else host,
                "app": None if app in nulls else app,
                "pid": None if pid in nulls else pid,
                "msgid": None if msgid in nulls else msgid,
                "data": data,
                "message": message,
            }

        return read


def _named(priority: str | None) -> tuple[str | None, int | None]:
    """Return the facility and the number of the severity."""
    if priority is None:
        return None, None
    facility, severity = divmod(int(priority), len(SEVERITIES))
    if facility >= len(FACILITIES):
        raise Mismatch
    return FACILITIES[facility], severity


def _moment(text: str) -> str:
    """Return RFC 3339 in the one spelling."""
    try:
        if len(text) > len("2026-11-22"):
            return rfc3339(text)
    except ValueError:
        pass
    raise Mismatch


def _nearest(
    now: float, zone: Zone | None, month: int, day: int, hour: int, minute: int, second: int
) -> str:
    """Return a time of a zone (None: UTC) that tells no year, in the year that is nearest to now.

    Of a time that a change of the clocks makes come twice or never, the offset before it counts.
    """
    today = date.fromordinal(_EPOCH_DAY + int(now // _DAY_SECONDS))
    found: list[tuple[timedelta, str]] = []
    for year in (today.year, today.year - 1, today.year + 1):
        try:
            clock = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - placed below
        except ValueError:  # 29 February; or no calendar shows it in any year
            continue
        days = clock.toordinal() - today.toordinal()
        clock, offset = (clock, UTC) if zone is None else zone.placed(clock, "before")
        written = timestamp(clock, 0, offset)
        if abs(days) <= _SURELY_NEAREST_DAYS:
            return written
        found.append((abs(clock - offset - EPOCH - timedelta(seconds=now)), written))
    if not found:
        raise Mismatch
    return min(found)[1]


def _elements(text: str) -> dict[str, Any]:
    """Return structured data: an object of parameters for each element.

    Raises: `Mismatch` for what is not as the RFC has it, and for more parameters than are taken.
    """
    if text.count('="') > MOST_NAMES:
        raise Mismatch(f"more than {MOST_NAMES:,} parameters")
    data: dict[str, Any] = {}
    end = 0
    for element in islice(_ELEMENTS.finditer(text), MOST_NAMES):
        if element.start() != end:
            raise Mismatch
        end = element.end()
        data[element[1]] = {
            name: unescaped(value, _MEANT) if "\\" in value else value
            for name, value, *_ in _PARAMETERS.findall(element[2])
        }
    if end != len(text):
        raise Mismatch
    return data
