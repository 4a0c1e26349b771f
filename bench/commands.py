"""What commands take from their start to their end, and a server until it is ready.

The bars are CPU seconds, the start of the interpreter included; beside each stands one that does nothing,
which is started turn and turn about with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from bench.measuring import Effort
from bench.servers import COMMAND, headrace, root
from bench.table import Row

HOURS_OF_A_YEAR = 8760
DAYS = """
- id: days
  inputs: [{type: http}]
  transforms:
    - {type: buffer, seconds: 86400, max_messages: 1000}
    - {type: reducer, group_by: [site], aggregations: [{function: avg, field: temp, as: mean}]}
"""
TEN: list[dict[str, Any]] = [
    {
        "id": f"line-{n}",
        "inputs": [{"type": "http"}],
        "transforms": [
            {
                "type": "filter",
                "Numeric": {"field": "temp", "operator": "greater_than", "value": n},
            },
            {"type": "map", "mappings": [{"type": "copy", "from": "temp", "as": "degrees"}]},
            {"type": "buffer", "seconds": 60, "max_messages": 100},
            {
                "type": "reducer",
                "group_by": ["site"],
                "aggregations": [{"function": "avg", "field": "degrees", "as": "mean"}],
            },
        ],
        "outputs": [{"type": "stdout"}],
    }
    for n in range(10)
]
"""Pipelines whose components are six of all that there are."""


def checkten(effort: Effort) -> list[Row]:
    """`headrace check` of ten pipelines."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")  # which JSON is as well
        config.write_text(json.dumps(TEN))
        return [_row("checkten", _turns(lambda: _command(["check", str(config)]), effort), 0.25)]


def serveready(effort: Effort) -> list[Row]:
    """`headrace serve` of ten pipelines, until it says that it is ready."""
    with tempfile.TemporaryDirectory() as folder:

        def ready() -> float:
            with headrace(TEN, Path(folder)) as server:
                return server.cpu

        return [_row("serveready", _turns(ready, effort), 0.45)]


def runyear(effort: Effort) -> list[Row]:
    """`headrace run` of a year of hourly readings through windows of a day."""
    began = datetime(2025, 1, 1, tzinfo=UTC)
    lines = [
        {"site": "n", "temp": 10 + n % 24, "time": (began + timedelta(hours=n)).isoformat()}
        for n in range(HOURS_OF_A_YEAR)
    ]
    year = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text(DAYS)
        run = ["run", str(config), "--time", "time"]
        return [_row("runyear", _turns(lambda: _command(run, year), effort), 0.5)]


def testcommand(effort: Effort) -> list[Row]:
    """`headrace test` of six tests."""
    file = root() / "specs" / "machines" / "config.tests.yaml"
    return [_row("testcommand", _turns(lambda: _command(["test", str(file)]), effort), 1.0)]


def _row(scenario: str, turns: Sequence[tuple[float, float]], most: float) -> Row:
    ours, nothing = zip(*turns, strict=True)
    middle = median(ours)
    return Row(
        scenario,
        f"{middle:.3f} CPU s",
        f"python -c pass: {median(nothing):.3f} CPU s",
        f"{middle:.3f} ({min(ours):.3f} to {max(ours):.3f})",
        f"at most {most:g} CPU s",
        middle <= most,
        middle,
    )


def _turns(ours: Callable[[], float], effort: Effort) -> list[tuple[float, float]]:
    """Return the CPU seconds of both sides, each time they are run; the first does not count."""
    nothing = [sys.executable, "-c", "pass"]
    return [(ours(), _cpu_of(nothing, b"")) for _ in range(effort.pairs + 1)][1:]


def _command(arguments: Sequence[str], given: bytes = b"") -> float:
    return _cpu_of([str(COMMAND), *arguments], given)


def _cpu_of(command: Sequence[str], given: bytes) -> float:
    """Return the CPU seconds that a process takes, until it has ended."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(
        command, input=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
