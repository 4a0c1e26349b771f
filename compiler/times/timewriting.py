"""Writing a time: by a format, whose source is written and compiled, or as a number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from headrace.compiler.code import compile_source
from headrace.compiler.times.directives import DAYS, KEPT, MONTHS, FormatPieces, pieces
from headrace.compiler.times.numbers import EPOCH, SECOND, UNITS
from headrace.compiler.times.rfc3339 import Write, offset_text

_ISO = "YYYY-MM-DDTHH:MM:SS"
_SLICES = {
    **{"%Y": (0, 4), "%y": (2, 4), "%m": (5, 7), "%d": (8, 10)},
    **{"%H": (11, 13), "%M": (14, 16), "%S": (17, 19)},
}
"""Where ISO 8601 has what a directive writes. To slice is quicker than to format."""
_EXPRESSIONS = {
    "%b": "months[clock.month - 1][:3]",
    "%B": "months[clock.month - 1]",
    "%e": "clock.day:2",
    "%j": "clock.timetuple().tm_yday:03",
    "%I": "(clock.hour + 11) % 12 + 1:02",
    "%p": "halves[clock.hour > 11]",
    "%f": "nanos:09",
    "%z": "offset_text(offset, '')",
    "%a": "days[clock.weekday()][:3]",
    "%A": "days[clock.weekday()]",
    "%s": "(clock - offset - epoch) // second",
}


@lru_cache(maxsize=KEPT)
def writer(pattern: str) -> Write:
    """Return the function that writes times by a format; a fraction has nine digits.

    Raises: FormatRefused
    """
    namespace: dict[str, Any] = {
        "days": DAYS,
        "epoch": EPOCH,
        "halves": ("AM", "PM"),
        "months": MONTHS,
        "offset_text": offset_text,
        "second": SECOND,
    }
    text = "".join(map(_written, _sliced(pieces(pattern))))
    lines = [
        "def write(clock, nanos, offset):",
        "    iso = clock.isoformat()",
        f'    return f"{text}"',
        "",
    ]
    source = "\n".join(lines)
    return compile_source("write", source, namespace, f"format {pattern}")


def _sliced(taken_apart: FormatPieces) -> Iterator[str | tuple[int, int]]:
    """Yield the pieces of a format, with slices of ISO 8601 where that has the same, as long as can be."""
    rest = [*taken_apart]
    while rest:
        piece = rest.pop(0)
        if piece not in _SLICES:
            yield piece
            continue
        start, end = _SLICES[piece]
        while len(rest) > 1 and rest[1] in _SLICES:
            further, far = _SLICES[rest[1]]
            if further != end + 1 or rest[0] != _ISO[end]:
                break
            end = far
            del rest[:2]
        yield start, end


def _written(piece: str | tuple[int, int]) -> str:
    """Return a piece as a part of a formatted string in double quotes."""
    if isinstance(piece, tuple):
        start, end = piece
        return f"{{iso[{start}:{end}]}}"
    if piece in _EXPRESSIONS:
        return f"{{{_EXPRESSIONS[piece]}}}"
    text = "%" if piece == "%%" else piece
    escaped = text.encode("unicode_escape").decode().replace('"', '\\"')
    return escaped.replace("{", "{{").replace("}", "}}")


def number_writer(unit: str) -> Write:
    """Return the function that writes times as whole numbers of a unit since 1970, cut down."""
    per_second, _ = UNITS[unit]
    nanos_each = 10**9 // per_second

    def write(clock: datetime, nanos: int, offset: timedelta) -> int:
        since: timedelta = clock - offset - EPOCH
        return (since.days * 86_400 + since.seconds) * per_second + nanos // nanos_each

    return write
