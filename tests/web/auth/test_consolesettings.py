"""What the settings file may say of the console, and how it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.web.auth.consolesettings import ConsoleSettings
from headrace.web.files.reading import Loaded
from tests.web.auth.loaded import read


def told(folder: Path, console: Any) -> Loaded:
    return read(folder, json.dumps({"console": console}), "server.json")


def policy(folder: Path, *sources: str) -> str:
    """Return what the policy of a page says of its frames."""
    loaded = told(folder, {"frame_ancestors": sources})
    assert loaded.diagnostics == []
    return loaded.settings.console.policy


@pytest.mark.parametrize("said", [None, {}, {"enabled": None}])
def test_the_console_is_served_and_shown_by_its_own_pages_unless_something_else_is_said(
    tmp_path: Path, said: Any
) -> None:
    loaded = told(tmp_path, said)

    assert loaded.diagnostics == []
    assert loaded.settings.console == ConsoleSettings()
    assert loaded.settings.console.enabled
    assert loaded.settings.console.policy == "frame-ancestors 'self'"


def test_it_can_be_left_out(tmp_path: Path) -> None:
    assert not told(tmp_path, {"enabled": False}).settings.console.enabled


def test_a_keyword_may_have_its_quotes_or_not(tmp_path: Path) -> None:
    assert policy(tmp_path, "self") == policy(tmp_path, "'self'") == "frame-ancestors 'self'"
    assert policy(tmp_path, "none") == policy(tmp_path, "'NONE'") == "frame-ancestors 'none'"


def test_an_empty_list_lets_nobody(tmp_path: Path) -> None:
    assert policy(tmp_path) == "frame-ancestors 'none'"


def test_whatever_a_policy_knows_as_an_origin_is_taken_as_it_is(tmp_path: Path) -> None:
    sources = [
        "https://portal.example",
        "https://portal.example:8443",
        "http://localhost:*",
        "https://*.plant.example",
        "portal.example",
        "10.0.0.1:8080",
        "*",
        "https:",
        "vscode-webview://*",
    ]

    assert policy(tmp_path, "self", *sources) == f"frame-ancestors 'self' {' '.join(sources)}"


@pytest.mark.parametrize(
    "source",
    [
        "https://portal.example; script-src *",
        "https://portal.example 'unsafe-inline'",
        "https://portal.example,https://other.example",
        "'unsafe-inline'",
        "https://portal.example\r\nX: y",
        "https://portal.example:0",
        "https://portal.example:65536",
        "https://*portal.example",
        "https://",
        "https:///x",
        "https://ü.example",
        "https://[::1]",
        "-://x",
    ],
)
def test_what_is_no_place_is_refused(tmp_path: Path, source: str) -> None:
    [wrong] = told(tmp_path, {"frame_ancestors": ["self", source]}).diagnostics

    assert (wrong.code, wrong.path) == ("not-a-url", "console.frame_ancestors[1]")
    assert "is no place that pages come from" in wrong.message
    assert wrong.expected is not None
    assert wrong.expected.startswith("self, none, or an origin")


def test_a_path_counts_for_nothing_and_is_refused_with_what_to_write(tmp_path: Path) -> None:
    [wrong] = told(tmp_path, {"frame_ancestors": ["https://portal.example:8443/board"]}).diagnostics

    assert wrong.suggestion == "write https://portal.example:8443"


@pytest.mark.parametrize(
    ("console", "code", "path"),
    [
        ({"frame_ancestors": ["none", "self"]}, "conflict", "console.frame_ancestors"),
        ({"frame_ancestors": "self"}, "wrong-type", "console.frame_ancestors"),
        ({"frame_ancestors": [1]}, "wrong-type", "console.frame_ancestors[0]"),
        ({"frame_ancestors": ["a"] * 101}, "out-of-range", "console.frame_ancestors"),
        ({"enabled": "yes"}, "wrong-type", "console.enabled"),
        ({"enable": True}, "unknown-key", "console.enable"),
        ([], "wrong-type", "console"),
    ],
)
def test_what_else_is_wrong_is_refused_at_its_place(
    tmp_path: Path, console: Any, code: str, path: str
) -> None:
    loaded = told(tmp_path, console)

    assert [(each.code, each.path) for each in loaded.diagnostics] == [(code, path)]
    assert loaded.is_refused
