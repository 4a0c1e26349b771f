"""The presets `combined` and `common`: a line of an access log, as Apache and nginx write them.

Source: https://httpd.apache.org/docs/current/mod/mod_log_config.html, and `log_format` of
https://nginx.org/en/docs/http/ngx_http_log_module.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.timestamps import rfc3339
from headrace.operators.parsing.form import MANY, Fields, TextForm
from headrace.operators.parsing.months import MONTH_DIGITS
from headrace.operators.parsing.values import FieldValues, Mismatch

# Nothing is given back (`++`): each character is looked at once or twice. The patterns of the extension
# take 0.4 µs less for a line of 3 µs; these are there without it.
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_REQUEST = rf'(?:"([^ "\\]++) ([^ "\\]++) ([^ "\\]++)"|{_QUOTED})'
_COMMON = (
    r"([^ ]++) [^ ]++ ([^ ]++) \[([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}(?::[0-9]{2}){3} [+-][0-9]{4})\] "
    rf"{_REQUEST} ([0-9]{{3}}) ([0-9]{{1,18}}|-)"
)
_COMMON_LINE = re.compile(rf"{_COMMON}(?![^ \r\n])")
_COMBINED_LINE = re.compile(rf"{_COMMON} {_QUOTED} {_QUOTED}(?![^ \r\n])")

_MOST_MOMENTS = 1_000
"""Times that are kept as they are written: lines of one second have the same."""


class AccessLog(TextForm):
    """A line of an access log. What follows behind the last field, after a blank, is left out.

    A request that is not of three words (a method, a path, a protocol) is kept whole, as `request`.
    """

    knows_types = True
    usual_nulls = ("-",)
    at_once = MANY
    line: ClassVar[re.Pattern[str]]
    more: ClassVar[tuple[str, ...]] = ()
    """What the line has besides."""

    @property
    def names(self) -> Sequence[str]:
        """What it may write; `request` only where that is no request."""
        known = ("ip", "user", "at", "method", "path", "protocol", "status", "bytes")
        return (*known, *self.more, "request")

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what reads a line."""
        match, nulls = self.line.match, values.nulls

        def read(text: str) -> Fields:
            found = match(text)
            if found is None:
                raise Mismatch
            ip, user, at, method, path, protocol, request, status, size, *others = found.groups()
            fields: dict[str, Any] = {
                "ip": ip,
                "user": None if user in nulls else user,
                "at": _moment(at),
                "method": method,
                "path": path,
                "protocol": protocol,
                "status": int(status),
                "bytes": None if size in nulls else _size(size),
            }
            if others:
                referer, agent = others
                fields["referer"] = None if referer in nulls else referer
                fields["agent"] = None if agent in nulls else agent
            if request is not None:
                words = request.split(" ")
                if len(words) == len(_WORDS):  # one of them has a backslash
                    fields.update(zip(_WORDS, words, strict=True))
                else:
                    fields["request"] = None if request in nulls else request
            return fields

        return read


class Common(AccessLog):
    """The common log format."""

    word = "common"
    line = _COMMON_LINE


class Combined(AccessLog):
    """The combined log format: the common one, and where a request came from and with what."""

    word = "combined"
    line = _COMBINED_LINE
    more = ("referer", "agent")


_WORDS = ("method", "path", "protocol")


def _size(text: str) -> int:
    if text == "-":
        raise Mismatch
    return int(text)


@lru_cache(_MOST_MOMENTS)
def _moment(text: str) -> str:
    """Return ``22/Nov/2026:12:00:07 +0000`` as RFC 3339, in its offset.

    Raises: `Mismatch` for what no calendar or clock shows.
    """
    month = MONTH_DIGITS.get(text[3:6])
    if month is None:
        raise Mismatch
    written = f"{text[7:11]}-{month}-{text[:2]}T{text[12:20]}{text[21:24]}:{text[24:]}"
    try:
        return rfc3339(written)
    except ValueError:
        raise Mismatch from None
