"""A scenario of times: a clock of a zone as text, to UTC as text, beside Python's own `strptime`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from bench import limits
from bench.measuring import Compared, Effort, compare, on_one_core
from bench.passes import Bed, ByHand, Config, one
from bench.table import Row, ratio_row

FORMAT = "%Y-%m-%d %H:%M:%S"
TO_UTC: list[Config] = [
    {
        "type": "map",
        "mappings": [
            {
                "type": "time",
                "from": "at",
                "format": FORMAT,
                "zone": "Europe/Berlin",
                "to_zone": "UTC",
            }
        ],
    }
]
_BERLIN = ZoneInfo("Europe/Berlin")


def times(effort: Effort) -> list[Row]:
    """One mapping that reads a local time and writes it in UTC."""
    alone, whole = (on_one_core(_against(by_hand, effort)) for by_hand in (_read, _to_utc))
    return [
        # Twice the messages in the time is half the time for each.
        ratio_row("times", alone, "strptime by hand", unit="msg/s", per=100, least=2),
        ratio_row("times", whole, "the same to UTC by hand", unit="msg/s", per=100),
    ]


async def _against(by_hand: ByHand, effort: Effort) -> Compared:
    given = _batches()
    async with Bed(one(TO_UTC), given) as bed:
        return await compare(bed.run, limits.over(given, by_hand), effort)


def _batches() -> list[list[dict[str, Any]]]:
    """Return batches of a hundred messages, a second apart: neighbours in time, as they come."""
    return [
        [
            {
                "machine": "press-01",
                "at": f"2026-11-22 {hour:02}:{n // 60:02}:{n % 60:02}",
                "rpm": n,
            }
            for n in range(100)
        ]
        for hour in range(20)
    ]


def _read(batch: Any) -> list[Any]:
    return [{**m, "at": datetime.strptime(m["at"], FORMAT)} for m in batch]  # noqa: DTZ007


def _to_utc(batch: Any) -> list[Any]:
    return [
        {
            **m,
            "at": datetime.strptime(m["at"], FORMAT)
            .replace(tzinfo=_BERLIN)
            .astimezone(UTC)
            .isoformat(),
        }
        for m in batch
    ]
