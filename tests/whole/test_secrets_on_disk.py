"""Pipelines that keep on the disk what fails: no file below the data directory has a credential in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.forked import run, serving
from tests.server import Server, settled
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import wait_until
from tests.whole.durable.lives import kill
from tests.whole.secrecy import DOOR, FILED, TOKEN, Told, echo, leaks
from tests.whole.test_capturing import capturing
from tests.whole.test_secrets import config

pytestmark = pytest.mark.long

SENT = {
    "Authorization": f"Bearer {DOOR}",
    "X-Request-Id": "r1",
    "X-Key": TOKEN,
    "Cookie": f"session={TOKEN}",
}


def keeping(at: str) -> Iterator[dict[str, Any]]:
    """Yield pipelines that keep what comes, what waits and what fails, each with another way to fail."""
    for way in config(at):
        [door] = way["inputs"]
        kept = {**door, "durable": True, "envelope": {"type": "wrap"}}
        yield {**way, "inputs": [kept], "dead_letters": True}
        if outputs := [{**each, "queue": {}} for each in way.get("outputs", ())]:
            id = f"{way['id']}-queued"
            yield {**way, "id": id, "inputs": [kept], "outputs": outputs, "dead_letters": True}


def in_tables(file: Path) -> Iterator[tuple[str, str]]:
    """Yield all that a store has, row by row: in the file itself a long one is in pieces."""
    with closing(sqlite3.connect(file)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for [name] in names:
            for row in database.execute(f"SELECT * FROM {name}").fetchall():
                for value in row:
                    octets = value if isinstance(value, bytes) else str(value).encode()
                    yield name, octets.decode("utf-8", "replace")


def in_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what is in all files."""
    for each in sorted(folder.rglob("*")):
        if each.is_file():
            yield each.name, each.read_bytes().decode("utf-8", "replace")


def keeps_something(server: Server, pipelines: list[dict[str, Any]]) -> bool:
    """Return whether of each there is a letter; of those that wait for their server, what waits."""
    return all(
        figure_of(server, "headrace_dead_letters_stored", pipeline=each["id"])
        or (
            "queue" in str(each)
            and figure_of(server, "headrace_stored_entries", pipeline=each["id"])
        )
        for each in pipelines
    )


def test_nothing_that_is_kept_has_a_credential_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEP_TOKEN", TOKEN)
    monkeypatch.setenv("DOOR_KEY", DOOR)
    (tmp_path / "secrets.json").write_text(json.dumps({"FILED_KEY": FILED}))
    options = ["--secrets", "secrets.json", "--data-dir", "data", "--debug"]
    options += settled(tmp_path, store={"keep_free_bytes": 2**20}, history={"durable": True})
    with echo() as at, serving(tmp_path, [*keeping(at)], *options) as server:
        told, pipelines = Told(server), [*keeping(at)]
        with capturing(tmp_path, server, "--for", "5m") as capture:
            for each in pipelines:
                for _ in range(2):
                    path = f"/api/pipelines/{each['id']}/messages"
                    assert told.ask("POST", path, {"n": 1}, **SENT).status == 202
            wait_until(lambda: keeps_something(server, pipelines), "something of each")
            capture.interrupt()
        for each in pipelines:
            letters = f"/api/pipelines/{each['id']}/dead-letters"
            for letter in told.ask("GET", letters).value["entries"]:
                told.ask("GET", f"{letters}/{letter['id']}")
        for path in ("/api/stored", "/api/dead-letters", "/metrics"):
            told.ask("GET", path)
        kill(server)
        history = [*told.history(), ("capture", capture.file.read_text())]
    kept = [*in_files(tmp_path / "data")]
    shown = [run(tmp_path, "store", *words, "data") for words in (["show"], ["check"])]
    kept += [("headrace store", each.stdout + each.stderr) for each in shown]
    kept += in_tables(tmp_path / "data" / "store" / "0" / "store.db")

    said = "".join(text for where, text in kept if where == "letters")
    assert "no: {" in said, "what servers answer is kept"
    assert "${DEEP_TOKEN}" in said
    entries = "".join(text for where, text in kept if where == "entries")
    assert '"r1"' in entries, "of headers those are kept that an envelope shows"
    assert leaks(kept) == []
    assert leaks(history) == []
