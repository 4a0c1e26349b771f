"""The hello config: once as a user runs it, and then by the minute in virtual time."""

from __future__ import annotations

import asyncio
import json
import math
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.web.files.reading import Files, load
from tests.server import serving
from tests.virtual import virtual

CONFIG = Path(__file__).with_name("config.yaml")
BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)


def fahrenheit(second: float) -> float:
    """Return what the config makes of the wave at a second, calculated without it."""
    return 10 * math.sin(2 * math.pi * second / 30) * 1.8


def mean(seconds: Sequence[float]) -> float:
    return math.fsum(map(fahrenheit, seconds)) / len(seconds)


def test_the_first_line_comes_within_six_seconds_and_a_signal_brings_what_is_held(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, CONFIG) as server:
        started = server.seconds
        events = server.events()

        [first] = server.out.wait(1)
        took = server.seconds
        events.next(stage="output")
        events.next(stage="input")  # the sixth reading: the buffer holds it
        server.signal(signal.SIGTERM)

        assert server.ended() == 0
        # A machine that has other things to do is slow to start; what comes then is not.
        assert took < max(6.0, started + 5.5)
        _, last = map(json.loads, server.out.all())
        check_first(json.loads(first))
        assert (last["pipeline"], last["count"], last["batch"][0]["readings"]) == ("hello", 1, 1)


def check_first(line: dict[str, Any]) -> None:
    assert list(line) == ["ts", "pipeline", "count", "batch"]
    [result] = line["batch"]
    assert (line["pipeline"], line["count"]) == ("hello", 1)
    assert (result["sensor"], result["readings"]) == ("sine", 5)
    written, until = datetime.fromisoformat(line["ts"]), datetime.fromisoformat(result["until"])
    assert abs((written - until).total_seconds()) < 1
    # The wave rises until second 7.5, and a reading is late, never early.
    on_time, late = mean([1, 2, 3, 4, 5]), mean([1.5, 2.5, 3.5, 4.5, 5.5])
    assert on_time - 1e-6 <= result["mean"] < late


@virtual(started_at=BEGIN)
async def run(seconds: float) -> None:
    """Run the config for so long, with what it prints on this process's standard output."""
    loaded = load(Files(CONFIG), catalogue())
    assert loaded.program is not None
    clock = Clock(asyncio.get_running_loop())
    engine = Engine(clock)
    await engine.load(loaded.program)
    await clock.sleep(seconds)
    await engine.close()


@pytest.fixture
def minute(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the lines of the first minute and what was held at its end."""
    run(60.5)
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


# By the second: below -5, from 17.5 to 27.5 and again 30 s later, nothing comes through. So one
# window ends five seconds after its first reading instead of with its fifth.
WINDOWS = [
    ([1, 2, 3, 4, 5], 5),
    ([6, 7, 8, 9, 10], 10),
    ([11, 12, 13, 14, 15], 15),
    ([16, 17], 21),
    ([28, 29, 30, 31, 32], 32),
    ([33, 34, 35, 36, 37], 37),
    ([38, 39, 40, 41, 42], 42),
    ([43, 44, 45, 46, 47], 47),
    ([58, 59, 60], 60.5),
]


def test_a_window_ends_with_five_readings_or_after_five_seconds(
    minute: list[dict[str, Any]],
) -> None:
    ends = [datetime.fromisoformat(line["ts"]) for line in minute]

    assert [(end - BEGIN).total_seconds() for end in ends] == [end for _, end in WINDOWS]


def test_every_window_is_one_line_with_the_mean_of_its_readings(
    minute: list[dict[str, Any]],
) -> None:
    results = [result for line in minute for result in line["batch"]]

    assert [line["count"] for line in minute] == [1] * len(WINDOWS)
    assert [result["sensor"] for result in results] == ["sine"] * len(WINDOWS)
    assert [result["readings"] for result in results] == [len(at) for at, _ in WINDOWS]
    assert [result["mean"] for result in results] == [
        pytest.approx(mean(at), rel=1e-12, abs=1e-12) for at, _ in WINDOWS
    ]


def test_a_line_tells_the_time_of_the_windows_last_reading(minute: list[dict[str, Any]]) -> None:
    untils = [datetime.fromisoformat(line["batch"][0]["until"]) for line in minute]

    assert [(until - BEGIN).total_seconds() for until in untils] == [at[-1] for at, _ in WINDOWS]
