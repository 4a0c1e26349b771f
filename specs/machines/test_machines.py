"""The machines config: once as a user runs it, and then a little more than an hour in virtual time.

What has to come out of the hour, and when, is put together here from the story alone: which readings
have come when the gate opens, when their time is over, or when too many wait.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.datadir import DataDir
from headrace.compiler.runtime.engine import Engine
from headrace.web.files.reading import Files, load
from tests.forked import serving
from tests.server import stored
from tests.virtual import virtual

Message = dict[str, Any]

CONFIG = Path(__file__).with_name("config.yaml")
README = CONFIG.with_name("README.md").read_text()
BEGIN = datetime(2026, 3, 2, 6, tzinfo=UTC)
END = 3605

TOLD: dict[int, Message] = {
    65: {"press": "press-9", "mode": "auto"},
    125: {"press": "press-7", "mode": "setup", "order": "A-1", "limits": {"temp": 62}},
    305: {"press": "press-7", "mode": "auto"},
    605: {"press": "press-7", "mode": "auto"},
    905: {"press": "press-7", "mode": "auto", "order": "A-2"},
    2455: {"press": "press-7", "mode": "setup", "order": "B-1", "limits": {"temp": 60}},
    2705: {"press": "press-7", "mode": "auto"},
    3305: {"press": "press-7", "mode": "off"},
}
"""By the second: what presses tell. From 905 on press-7 is silent for so long that it is forgotten."""
NO_TEMPERATURES = {1008: "n/a", 1107: "n/a", 2007: -500, 2016: -501}
"""By the second: what is measured then and is nothing of the kind."""


def reading(second: int, number: int = 0) -> Message:
    temp = NO_TEMPERATURES.get(second, 135 + (second + number) % 17)
    return {"press": "press-7", "second": second, "number": number, "temp": temp, "unit": "F"}


ARRIVING: dict[int, list[Message]] = {
    **{second: [reading(second)] for second in range(9, END, 9)},
    77: [{"press": "press-9", "temp": 140, "unit": "F"}],  # not what the pipeline is for
    2501: [reading(2501, number) for number in range(700)],  # the network was away
}
"""By the second: what is posted as readings."""


@dataclass(frozen=True)
class Release:
    """Readings that go on together, and what is known of the press then."""

    at: int
    readings: Sequence[Message]
    mode: str | None
    order: str | None
    limit: float | None

    @property
    def time(self) -> str:
        return (BEGIN + timedelta(seconds=self.at)).isoformat(timespec="microseconds")

    def rows(self) -> list[Message]:
        """Return what is made of the readings."""
        return [self._row(dict(each)) for each in self.readings]

    def _row(self, row: Message) -> Message:
        flags = {None: ["unknown"], "auto": []}.get(self.mode, ["idle"])
        if row["second"] in NO_TEMPERATURES:
            flags = [*flags, "odd"]
        else:
            row |= {"temp": round((row["temp"] - 32) / 1.8, 1), "unit": "C"}
            if self.limit is not None and row["temp"] > self.limit:
                flags = [*flags, "hot"]
        known = {"mode": self.mode, "order": self.order}
        return {**row, **known, "flags": flags, "passed_at": self.time}


def between(start: int, end: int) -> list[Message]:
    """Return the readings of the press that come after one moment and until another."""
    times = sorted(second for second in ARRIVING if start < second <= end)
    return [each for time in times for each in ARRIVING[time] if each["press"] == "press-7"]


def passing(start: int, end: int, *known: Any) -> list[Release]:
    """Return releases of readings that find the gate open."""
    each = groupby(between(start, end), key=lambda reading: reading["second"])
    return [Release(second, [*readings], *known) for second, readings in each]


WAITING = between(2409, 2501)
"""What waits when the burst has come: more than 500."""

RELEASES = [
    Release(305, between(0, 305), "auto", "A-1", 62),
    *passing(305, 905, "auto", "A-1", 62),
    *passing(905, 1805, "auto", "A-2", 62),
    Release(1809 + 600, between(1805, 1809 + 600), None, None, None),
    Release(2501, WAITING[:500], "setup", "B-1", 60),
    Release(2705, [*WAITING[500:], *between(2501, 2705)], "auto", "B-1", 60),
    *passing(2705, 3305, "auto", "B-1", 60),
    Release(END, between(3305, END), "off", "B-1", 60),
]


@virtual(started_at=BEGIN)
async def run(data: Path) -> None:
    """Run the config, with every message posted at its second."""
    loaded = load(Files(CONFIG), catalogue())
    assert loaded.program is not None
    clock = Clock(asyncio.get_running_loop())
    engine = Engine(clock, connections=loaded.connections, data_dir=DataDir(data), base=loaded.base)
    await engine.load(loaded.program)
    posts = [(second, "modes", [told]) for second, told in TOLD.items()]
    posts += [(second, "press-7", messages) for second, messages in ARRIVING.items()]
    for second, pipeline, messages in sorted(posts, key=lambda post: post[0]):
        await clock.sleep((BEGIN + timedelta(seconds=second) - clock.now()).total_seconds())
        way_in = engine.way_in(pipeline)
        assert way_in is not None
        assert way_in.ingress.offer(messages, ("POST", None, []))
    await clock.sleep((BEGIN + timedelta(seconds=END) - clock.now()).total_seconds())
    await engine.close()


@dataclass(frozen=True)
class Hour:
    """What a run prints, files and logs, and the CPU seconds it takes."""

    lines: list[Message]
    rows: list[Message]
    warnings: list[str]
    seconds: float


@pytest.fixture
def hour(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Hour:
    """Run the hour, and return what came of it."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    began = time.process_time()
    run(data)
    seconds = time.process_time() - began
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    warnings = [record.message for record in caplog.records]
    return Hour(lines, stored(data / "press-7"), warnings, seconds)


def timeless(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "...", text)


def test_what_the_page_says_happens(tmp_path: Path) -> None:
    posts = re.findall(r"curl -d '(.+)' http://127.0.0.1:6767(.+)", README)
    *before, opening, after = posts
    with serving(tmp_path, CONFIG, "--data-dir", "data") as server:
        events = server.events()

        def accepts(path: str, body: str) -> bool:
            return server.request("POST", path, body.encode()).status == 202

        assert all(accepts(path, body) for body, path in before)
        events.next(pipeline_id="modes", stage="input")
        told = server.get("/api/state/machines").body.decode()
        assert server.metric("headrace_messages_held", pipeline="press-7") == 2
        assert all(accepts(path, body) for body, path in [opening, after])
        printed = server.out.wait(2)
        warned = server.err.find(re.compile(".+ WARNING .+"))[0]

        assert server.stop() == 0
        shown = re.findall(r'^(?:\{"(?:name|ts)"|[-\dT:.+]+ WARNING ).+', README, re.MULTILINE)
        said = [timeless(line) for line in shown]
        assert [timeless(line) for line in [told, *printed, warned]] == said
        rows = [row for line in printed for row in json.loads(line)["batch"]]
        assert stored(tmp_path / "data" / "press-7") == rows


def test_nothing_is_wrong_with_the_config() -> None:
    assert load(Files(CONFIG), catalogue()).diagnostics == []


def test_readings_go_on_when_the_press_runs_or_they_have_waited_too_long_or_too_many_wait(
    hour: Hour,
) -> None:
    ends = [datetime.fromisoformat(line["ts"]) - BEGIN for line in hour.lines]

    printed = [
        (end.total_seconds(), line["count"]) for end, line in zip(ends, hour.lines, strict=True)
    ]
    assert printed == [(release.at, len(release.readings)) for release in RELEASES]


def test_a_reading_goes_on_with_what_is_known_then_converted_and_flagged(hour: Hour) -> None:
    assert [line["batch"] for line in hour.lines] == [release.rows() for release in RELEASES]


def test_every_reading_of_the_press_is_filed_once_in_the_order_of_its_coming(hour: Hour) -> None:
    assert hour.rows == [row for line in hour.lines for row in line["batch"]]
    came = [(row["second"], row["number"]) for row in hour.rows]
    assert came == sorted(came)
    assert len(came) == 400 + 700


def test_the_log_tells_each_oddity_once(hour: Hour) -> None:
    assert hour.warnings == [
        "pipeline 'press-7' transforms[3]: scripts/enrich.rhai: press-7: a temperature that is no number",
        "pipeline 'press-7' transforms[3]: scripts/enrich.rhai: press-7: a temperature below absolute zero",
        "pipeline 'press-7' transforms[1]: held 500 messages ('max_messages') before 600 seconds were"
        " over or the gate opened: released early",
    ]


def test_the_hour_takes_less_than_half_a_second(hour: Hour) -> None:
    assert hour.seconds < 0.5
