"""The weather config: a year over HTTP to the installed command, every number calculated anew.

Real time cuts windows where it likes, so there a day may come in two rows, which are put together
here. In virtual time the year takes a second, and every window ends where it has to.
"""

from __future__ import annotations

import asyncio
import csv
import json
import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.liveevents import Run
from headrace.web.files.reading import Files, load
from specs.weather.readings import Reading, readings, source
from tests.forked import serving
from tests.server import Server, stored
from tests.virtual import virtual

HERE = Path(__file__).parent
MIDNIGHT = datetime(2010, 1, 1, 8, tzinfo=UTC)  # at Seattle

SINGLES = 24 * 30
"""So many readings are posted one by one,"""
DAYS = 24 * 100
"""so many as an array a day, and the rest as one array."""


@dataclass(frozen=True)
class Day:
    """What is known of a day's readings."""

    readings: int
    mean: float
    low: float
    high: float


@pytest.fixture(scope="session")
def file() -> Path:
    found = source()
    if found is None:
        pytest.skip("vega-datasets is not installed")
    return found


@pytest.fixture(scope="session")
def year(file: Path) -> list[Reading]:
    return readings(file)


@pytest.fixture(scope="session")
def expected(file: Path) -> dict[str, Day]:
    """Calculate the days from the file's own rows, by the standard library alone."""
    temperatures = defaultdict(list)
    for hour, temperature in list(csv.reader(file.read_text().splitlines()))[1:]:
        temperatures[hour[:10].replace("/", "-")].append(float(temperature))
    return {
        day: Day(len(temps), math.fsum(temps) / len(temps), min(temps), max(temps))
        for day, temps in temperatures.items()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with the config and its connections, and nothing else."""
    for config in HERE.glob("*.yaml"):
        shutil.copy(config, tmp_path)
    return tmp_path


def put_together(rows: Iterable[dict[str, Any]]) -> dict[str, Day]:
    """Return the days of which there are rows, however many of each."""
    parts = defaultdict(list)
    for row in rows:
        parts[row["day"]].append(row)
    return {day: _whole(rows) for day, rows in parts.items()}


def _whole(rows: Sequence[dict[str, Any]]) -> Day:
    count = sum(row["readings"] for row in rows)
    return Day(
        count,
        math.fsum(row["mean"] * row["readings"] for row in rows) / count,
        min(row["low"] for row in rows),
        max(row["high"] for row in rows),
    )


def about(days: dict[str, Day]) -> dict[str, Any]:
    """Return the days for a comparison in which the last bit of a mean does not count."""
    return {
        day: (it.readings, pytest.approx(it.mean, rel=1e-12), it.low, it.high)
        for day, it in days.items()
    }


def exactly(days: dict[str, Day]) -> dict[str, Any]:
    return {day: (it.readings, it.mean, it.low, it.high) for day, it in days.items()}


def hot(days: dict[str, Day]) -> set[tuple[str, float, str]]:
    return {(day, it.high, f"hot on {day}") for day, it in days.items() if it.high > 75}


def hottest_rows(rows: Iterable[dict[str, Any]]) -> set[tuple[str, float, str]]:
    """Return what the heat pipeline says of each day, the highest where it says several."""
    said = sorted((row["day"], row["high"], row["text"]) for row in rows)
    return set({day: (day, high, text) for day, high, text in said}.values())


def post(server: Server, year: list[Reading]) -> int:
    """Post the year in three ways over one connection; return how many readings were accepted."""
    client, ahead = server.client(), SINGLES + DAYS
    singles = list(year[:SINGLES])
    arrays = [year[at : at + 24] for at in range(SINGLES, ahead, 24)]
    answers = [client.post("weather", each) for each in [*singles, *arrays, year[ahead:]]]
    assert {answer.status for answer in answers} == {202}
    return sum(answer.value["accepted"] for answer in answers)


def signalled(server: Server) -> None:
    assert server.stop() == 0


def deleted(server: Server) -> None:
    """End the pipelines one by one, while the server goes on."""
    for pipeline in ("weather", "heat"):
        assert server.request("DELETE", f"/api/pipelines/{pipeline}").status == 204


@pytest.mark.parametrize("ended", [signalled, pytest.param(deleted, marks=pytest.mark.long)])
def test_a_year_of_readings_comes_out_as_daily_figures_and_hot_days(
    folder: Path, year: list[Reading], expected: dict[str, Day], ended: Callable[[Server], None]
) -> None:
    began = datetime.now(UTC)
    with serving(folder, folder / "config.yaml", "--data-dir", "data") as server:
        accepted = post(server, year)
        ended(server)
        daily, heat = stored(folder / "data" / "daily"), stored(folder / "data" / "heat")
        if server.process.poll() is None:
            assert server.stop() == 0
        printed = [json.loads(line) for line in server.out.all()]

    assert accepted == len(year) == 8759
    assert exactly(put_together(daily)) == about(expected)
    assert hottest_rows(heat) == hot(expected)
    assert all(list(row) == ["day", "high", "text"] for row in heat)
    assert [row for line in printed for row in line["batch"]] == daily
    assert all(line["count"] == len(line["batch"]) for line in printed)
    assert {line["pipeline"] for line in printed} == {"weather"}
    arrived = {datetime.fromisoformat(row["received_at"]) for row in daily}
    assert began <= min(arrived) <= max(arrived) <= datetime.now(UTC)


LIVE = 23.5 * 3600
"""The window that the README names for readings that come as the hours pass."""


@virtual(started_at=MIDNIGHT - timedelta(minutes=1))
async def live(folder: Path, year: list[Reading], shown: list[dict[str, Any]]) -> None:
    """Post every reading when its hour strikes; keep what the event stream shows meanwhile."""
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("seconds: 5", f"seconds: {LIVE:.0f}"))
    loaded = load(Files(config), catalogue())
    assert loaded.program is not None
    clock = Clock(asyncio.get_running_loop())
    data = folder / "data"
    data.mkdir()
    # Without history, which would read the counters six million times.
    engine = Engine(
        clock, connections=loaded.connections, data_dir=DataDir(data), retention_seconds=0
    )
    await engine.load(loaded.program)
    watching = asyncio.create_task(watch(engine, shown))
    way_in = engine.way_in("weather")
    assert way_in is not None
    for reading in year:
        hour = datetime.fromisoformat(str(reading["time"]))
        await clock.sleep((hour - clock.now()).total_seconds())
        assert way_in.ingress.offer([reading], ("POST", None, []))
    await clock.sleep(LIVE)
    await engine.close()
    await watching


async def watch(engine: Engine, shown: list[dict[str, Any]]) -> None:
    async for run in engine.observe():
        assert isinstance(run, Run)
        shown += [json.loads(event.data) for event in run.events]


@pytest.mark.long
def test_posted_live_with_a_window_of_a_day_every_day_is_one_row(
    folder: Path,
    year: list[Reading],
    expected: dict[str, Day],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    shown: list[dict[str, Any]] = []

    live(folder, year, shown)

    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    rows = [row for line in printed for row in line["batch"]]
    assert [row["day"] for row in rows] == list(expected)
    assert exactly(put_together(rows)) == about(expected)
    assert stored(folder / "data" / "daily") == rows
    heat = stored(folder / "data" / "heat")
    assert [row["day"] for row in heat] == [day for day, *_ in sorted(hot(expected))]
    received = [datetime.fromisoformat(row["received_at"]) - MIDNIGHT for row in rows]
    assert received == [timedelta(days=day, hours=23) for day in range(365)]
    ends = [datetime.fromisoformat(line["ts"]) - MIDNIGHT for line in printed]
    assert ends == [timedelta(days=day, seconds=LIVE) for day in range(365)]
    passed = [e["payload"]["batch"] for e in shown if of(e, "weather", "output")]
    assert [json.loads(text) for batch in passed for text in batch["messages"]] == rows


def of(event: dict[str, Any], pipeline: str, stage: str) -> bool:
    return (event["pipeline_id"], event["stage"]) == (pipeline, stage)
