"""Scenarios of payloads in other formats than JSON: what is made of one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import msgspec

from bench.measuring import Effort, Work, compare, on_one_core
from bench.table import Row, ratio_row
from headrace.compiler.formats import CsvOptions, FormatOptions, PayloadFormat, decoded
from headrace.compiler.jsontext import Decoding

NAMES = ("machine", "at", "temp", "n", "state", "note")
TYPES = {"temp": "float", "n": "integer"}


def ndjson100(effort: Effort) -> list[Row]:
    """A hundred messages in lines, beside the same as an array."""
    messages = [*map(msgspec.json.encode, _messages(100))]
    lines, array = b"\n".join([*messages, b""]), b"[%b]" % b",".join(messages)
    decoding = Decoding()

    def at_once() -> list[Any]:
        batch: list[Any] = decoding.decode_usual(array)
        return batch

    return _beside("ndjson100", "ndjson", lines, at_once, "a JSON array", 0.9, effort)


def csv1000(effort: Effort) -> list[Row]:
    """A table of a thousand rows, two of its columns with a type, beside the module's reader.

    By hand there are no checks: what `float` and `int` take that a cast does not is taken.
    """
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(NAMES)
    rows.writerows([each.values() for each in _messages(1000)])
    body = written.getvalue().encode()

    def by_hand() -> list[Any]:
        reader = csv.reader(io.StringIO(body.decode(), newline=""), strict=True)
        next(reader)
        made = []
        for machine, at, temp, n, state, note in reader:
            made.append(
                {
                    "machine": machine or None,
                    "at": at or None,
                    "temp": float(temp) if temp else None,
                    "n": int(n) if n else None,
                    "state": state or None,
                    "note": note or None,
                }
            )
        return made

    return _beside("csv1000", "csv", body, by_hand, "csv.reader, and types by hand", 0.8, effort)


def _messages(count: int) -> list[dict[str, Any]]:
    return [
        {
            "machine": f"m{n % 40}",
            "at": f"2026-11-22T12:00:{n % 60:02}Z",
            "temp": 20 + n / 100,
            "n": n,
            "state": "running, warm" if n % 10 == 0 else "ok",
            "note": None,
        }
        for n in range(count)
    ]


def _beside(
    name: str,
    word: str,
    body: bytes,
    limit: Callable[[], list[Any]],
    against: str,
    least: float,
    effort: Effort,
) -> list[Row]:
    format, decoding = PayloadFormat.known[word](_options()), Decoding()

    def ours() -> list[Any]:
        return decoded(format, body, decoding)

    if ours() != limit():
        raise RuntimeError(f"{name}: the two sides do not make the same of it")
    found = on_one_core(compare(_times(ours), _times(limit), effort))
    count = len(limit())
    return [ratio_row(name, found, against, unit="msg/CPU s", per=count, least=least)]


def _options() -> FormatOptions:
    return FormatOptions(csv=CsvOptions.load({"types": TYPES}))


def _times(work: Callable[[], object]) -> Work:
    async def repeated(times: int) -> None:
        for _ in range(times):
            work()

    return repeated
