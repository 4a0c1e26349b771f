"""With `--log-format json` every line on standard error is one object, whatever happens."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST
from tests.forked import run, serving
from tests.server import written

PRINTING = {"inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}
WARM = {"type": "filter", "Numeric": {"field": "temp", "operator": "greater_than", "value": 20}}
JSON = ("--log-format", "json")


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_server_tells_its_life_in_objects(tmp_path: Path) -> None:
    config = [{"id": "p", **PRINTING, "transforms": [WARM]}]
    with serving(tmp_path, config, *JSON) as server:
        server.post("p", {"temp": "cold"})
        server.err.wait(2)
        assert server.stop() == 0

    start, dropped = entries(str(server.err))[:2]
    assert start["message"] == f"headrace runs 1 pipeline at http://{HOST}:{server.port}"
    assert (dropped["level"], dropped["pipeline"], dropped["place"]) == (
        "WARNING",
        "p",
        "transforms[0]",
    )
    assert all(
        {"time", "level", "logger", "message"} <= entry.keys() for entry in entries(str(server.err))
    )


def test_the_form_can_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.server.environment", lambda: {"HEADRACE_LOG_FORMAT": "json"})
    with serving(tmp_path, [{"id": "p", **PRINTING}]) as server:
        assert entries(server.err.wait(1)[0])[0]["level"] == "INFO"
        server.signal(signal.SIGTERM)


def test_each_mistake_of_a_config_is_an_object(tmp_path: Path) -> None:
    written(tmp_path, [{"id": "p", **PRINTING, "a": 1, "b": 2}])

    told = run(tmp_path, "serve", "--config", "config.json", *JSON)
    checked = run(tmp_path, "check", "config.json", "--format", "json")

    assert told.returncode == 1
    assert {entry["level"] for entry in entries(told.stderr)} == {"ERROR"}
    assert [entry["diagnostic"] for entry in entries(told.stderr)] == json.loads(checked.stdout)


def test_what_is_odd_about_a_config_is_an_object_too(tmp_path: Path) -> None:
    script = {"type": "script", "source": {"type": "inline", "code": "let a = 1;"}}
    config = [{"id": "p", **PRINTING, "transforms": [script]}]
    with serving(tmp_path, config, *JSON) as server:
        [odd] = entries(server.err.wait(1)[0])

    assert (odd["level"], odd["diagnostic"]["code"]) == ("WARNING", "no-emit")


@pytest.mark.long
def test_an_address_that_is_taken_is_told_in_an_object(tmp_path: Path) -> None:
    with serving(tmp_path, []) as server:
        ended = run(tmp_path, "serve", "--listen", f"{HOST}:{server.port}", *JSON)

    [entry] = entries(ended.stderr)
    assert ended.returncode == 1
    assert entry["message"].startswith(f"cannot listen on {HOST}:{server.port}: ")


def test_a_form_that_is_none_is_a_mistake_of_usage(tmp_path: Path) -> None:
    ended = run(tmp_path, "serve", "--log-format", "xml")

    assert ended.returncode == 2
    assert "'xml' is not one of 'text', 'json'" in ended.stderr
