"""Scenarios of texts that are taken apart, inside one process, held against a pattern and casts by hand."""

from __future__ import annotations

import random
import re
from datetime import datetime
from typing import Any

from bench import limits, passes
from bench.measuring import Compared, Effort, compare, on_one_core
from bench.table import Row, ratio_row

LINES: list[dict[str, Any]] = [
    {"type": "parse", "from": "value", "preset": "combined", "keep": "parsed"}
]
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NUMBERS = {month: f"{number:02}" for number, month in enumerate(_MONTHS, 1)}
_LINE = re.compile(
    r'([^ ]+) [^ ]+ ([^ ]+) \[([^\]]+)\] "([^ "]+) ([^ "]+) ([^ "]+)" ([0-9]{3}) ([0-9]+|-) '
    r'"([^"\\]*+(?:\\.[^"\\]*+)*+)" "([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)


def combined(effort: Effort) -> list[Row]:
    """Lines of an access log, into typed fields."""
    compared = on_one_core(_against_a_pattern(effort))
    limit = "a pattern and casts by hand"
    return [ratio_row("combined", compared, limit, unit="msg/s", per=100, least=0.77)]


async def _against_a_pattern(effort: Effort) -> Compared:
    given = [lines(100, seed) for seed in range(16)]
    async with passes.Bed(passes.one(LINES), given) as bed:
        return await compare(bed.run, limits.over(given, by_hand), effort)


def lines(count: int, seed: int) -> list[dict[str, Any]]:
    """Return lines as nginx writes them; some ten of them are of one second."""
    chance = random.Random(seed)
    return [
        {
            "value": f"203.0.113.{chance.randrange(256)} - - "
            f"[22/Nov/2026:12:{seed:02}:{at // 10:02} +0000] "
            f'"GET /api/items/{chance.randrange(10_000)}?q=a HTTP/1.1" 200 {chance.randrange(100_000)} '
            '"https://shop.example/list" "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"'
        }
        for at in range(count)
    ]


def by_hand(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Match each line, and give its fields their types."""
    made = []
    for message in batch:
        found = _LINE.match(message["value"])
        if found is None:
            raise limits.Failed
        ip, user, at, method, path, protocol, status, size, referer, agent = found.groups()
        written = f"{at[7:11]}-{_NUMBERS[at[3:6]]}-{at[:2]}T{at[12:20]}{at[21:24]}:{at[24:]}"
        made.append(
            {
                "ip": ip,
                "user": None if user == "-" else user,
                "at": datetime.fromisoformat(written).isoformat(),
                "method": method,
                "path": path,
                "protocol": protocol,
                "status": int(status),
                "bytes": None if size == "-" else int(size),
                "referer": None if referer == "-" else referer,
                "agent": None if agent == "-" else agent,
            }
        )
    return made
