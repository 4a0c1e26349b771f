"""What the pages about operating, sign-in and saving say in tables and examples is so."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.retention import DEFAULT_RETENTION, MOST_RETENTION
from headrace.compiler.runtime import sampling
from headrace.compiler.runtime.monitoring import feed
from headrace.web import service
from headrace.web.auth import passwords, sessions, settingsfile, signingkeys
from headrace.web.commands.cli import commands
from headrace.web.files.reading import Files, load
from headrace.web.process import (
    boundedreading,
    connectionlimit,
    lingering,
    postturns,
    protocol,
    server,
)
from headrace.web.process.log import JsonLine, OneLine

DOCS = Path(__file__).parent.parent / "docs"
OPERATING = (DOCS / "operating.md").read_text()
SIGN_IN = (DOCS / "sign-in.md").read_text()


def rows(page: str, head: str) -> list[list[str]]:
    """Return the cells of the table whose head begins so, line by line."""
    [table] = re.findall(rf"^\| {head} .*\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def examples(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def test_the_options_are_those_of_the_command() -> None:
    shown = {}
    for option, variable, default, _ in rows(OPERATING, "option"):
        [name] = re.findall(r"--[\w-]+", option)
        shown[name] = (variable.strip("` "), default.strip("` "))

    taken = {param.opts[0]: param for param in commands.commands["serve"].params}
    assert shown.keys() == taken.keys()
    for name, (variable, default) in shown.items():
        assert (taken[name].envvar or "") == variable
        if "`" in default or default in ("text", "127.0.0.1:6767"):
            assert str(taken[name].default) == default


def test_an_entry_of_the_log_looks_as_it_is_shown() -> None:
    [text] = [line for line in examples(OPERATING, "") if " dropped a message" in line]
    [shown] = [line for line in examples(OPERATING, "json") if " dropped a message" in line]
    entry = json.loads(shown)
    said = "pipeline '%s' %s: dropped a message whose 'temp' is not a number"
    names = (entry["pipeline"], entry["place"])
    record = logging.LogRecord(entry["logger"], logging.WARNING, "", 0, said, names, None)
    record.created = datetime.fromisoformat(entry["time"]).timestamp()

    assert JsonLine().format(record) == shown.strip()
    assert OneLine().format(record) == text.strip()


def test_what_a_scraper_is_given_is_yaml() -> None:
    scrape, alerts = map(yaml.safe_load, examples(OPERATING, "yaml"))

    assert scrape["scrape_configs"][0]["basic_auth"].keys() == {"username", "password_file"}
    named = re.findall(r"headrace_\w+", str(alerts))
    metrics = (DOCS / "api.md").read_text()
    assert [name for name in named if f"`{name}`" not in metrics] == []


@pytest.mark.parametrize(
    "said",
    [
        f"{connectionlimit.MOST_CONNECTIONS:,}, or three quarters of the files",
        f"{ {15: 'a sixteenth'}[feed.REST] } of the time",
        f"| {boundedreading.MOST_HEAD_BYTES // 1024} KiB | 431 |",
        f"| {connectionlimit.MOST_HELD // 2**20} MiB |",
        f"| {lingering.MOST_DROPPED // 2**20} MiB, {lingering.LINGER_SECONDS} seconds,"
        f" {lingering.SILENT_SECONDS} without a byte |",
        f"| {postturns.TURN_SECONDS * 1000:.0f} ms of each turn of the server",
        f"| {sampling.AT_ONCE} at a time | 503 |",
        f"{passwords.MOST_WAITING} wait | 503 |",
        f"{service.MOST_WAITING} wait, and {service.MOST_LOGINS:,} logins |",
        f"{sessions.MOST:,}, {sessions.MOST_OF_ONE:,} of one user",
        f"before {server.IDLE_SECONDS} seconds",
        f"{protocol.LOOKS * server.LOOK_SECONDS} to {(protocol.LOOKS + 1) * server.LOOK_SECONDS}"
        " seconds for its head",
        f"| a request with everything | {boundedreading.MOST_BYTES // 2**20} MiB |",
    ],
)
def test_the_limits_are_those_of_the_server(said: str) -> None:
    assert said in " ".join(OPERATING.split())


@pytest.mark.parametrize(
    "said",
    [
        f"`history.retention_secs` | {DEFAULT_RETENTION} |",
        f"up to {MOST_RETENTION};",
        f"`session.idle_secs` | {settingsfile.IDLE_SECONDS} |",
        f"more than {sessions.MOST:,}, or {sessions.MOST_OF_ONE:,} of one user",
        f"from {passwords.LEAST_KIB // 1024} MiB to {passwords.MOST_KIB // 1024} MiB",
        f"{passwords.MOST_WAITING} attempts wait",
        f"for {signingkeys.FETCH_SECONDS} seconds at most",
    ],
)
def test_the_defaults_and_bounds_of_sign_in_are_those_of_the_server(said: str) -> None:
    assert said in " ".join(SIGN_IN.split())


def files() -> list[str]:
    return [text for text in examples(SIGN_IN, "yaml") if text.startswith("auth:")]


@pytest.mark.parametrize("text", files())
def test_a_settings_file_that_is_shown_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.yaml").write_text(text)
    given = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "correct horse")
    (tmp_path / "secrets.json").write_text(json.dumps(given))

    loaded = load(
        Files(None, None, tmp_path / "secrets.json", tmp_path / "server.yaml"), catalogue()
    )

    assert loaded.diagnostics == []
    assert loaded.settings.auth.accounts or loaded.settings.auth.roles
