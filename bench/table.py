"""The table: one row per figure, with the limit it is held against and what it has to reach."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.measuring import Compared

COLUMNS = ("scenario", "measured", "held against", "figure", "bar", "")
DRIVERS = (
    *("uvicorn", "uvloop", "httptools", "msgspec", "reactivex"),
    *("aiokafka", "aiomqtt", "paho-mqtt", "nats-py", "redis", "hiredis"),
    *("asyncpg", "clickhouse-connect", "aioboto3", "aiobotocore", "asyncua"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``holds`` is None where nothing is asked of it."""

    scenario: str
    measured: str
    against: str
    figure: str
    bar: str = "-"
    holds: bool | None = None
    value: float = 0.0

    @property
    def verdict(self) -> str:
        """What the last column says."""
        return {None: "", True: "holds", False: "**short**"}[self.holds]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        return self.scenario, self.measured, self.against, self.figure, self.bar, self.verdict


def ratio_row(
    scenario: str,
    compared: Compared,
    against: str,
    *,
    unit: str,
    per: int = 1,
    least: float | None = None,
) -> Row:
    """Return the row of a comparison whose unit of work holds ``per`` of what is counted."""
    low, high = min(compared.ratios), max(compared.ratios)
    return Row(
        scenario,
        f"{rate(per / compared.ours)} {unit}",
        f"{against}: {rate(per / compared.limit)} {unit}",
        f"{compared.ratio:.2f} ({low:.2f} to {high:.2f})",
        "-" if least is None else f"at least {least:g}",
        None if least is None else compared.ratio >= least,
        compared.ratio,
    )


def clock_rows(
    scenario: str, beside: tuple[Compared, Compared], against: str, *, unit: str, least: float
) -> list[Row]:
    """Return the rows of a comparison on the clock, which is held against the bar, and of the CPU."""
    clock, cpu = beside
    return [
        ratio_row(scenario, clock, against, unit=f"{unit}/s", least=least),
        ratio_row(scenario, cpu, "the same", unit=f"{unit}/CPU s"),
    ]


def cpu_rows(
    scenario: str, beside: tuple[Compared, Compared], against: str, *, unit: str, least: float
) -> list[Row]:
    """Return the rows of a comparison of the CPU, which is held against the bar, and on the clock."""
    clock, cpu = beside
    return [
        ratio_row(scenario, cpu, against, unit=f"{unit}/CPU s", least=least),
        ratio_row(scenario, clock, "the same", unit=f"{unit}/s"),
    ]


def rate(per_second: float) -> str:
    """Return a rate per second in three figures: ``1.23 M``."""
    for scale, letter in ((1e6, " M"), (1e3, " k")):
        if per_second >= scale:
            return f"{per_second / scale:.3g}{letter}"
    return f"{per_second:.3g}"


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a table that reads well as text, too."""
    lines = [COLUMNS, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *body = (_line(line, widths) for line in lines)
    return "\n".join([head, _line(["-" * width for width in widths], widths), *body]) + "\n"


def machine() -> str:
    """Return what it was measured on."""
    told = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    cpu = told[1].strip() if told else platform.machine()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    drivers = ", ".join(f"{name} {version(name)}" for name in DRIVERS)
    return (
        f"{cpu}, {os.cpu_count()} cores; {system}; "
        f"{platform.python_implementation()} {platform.python_version()}; {drivers}."
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    filled = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(filled)} |"
