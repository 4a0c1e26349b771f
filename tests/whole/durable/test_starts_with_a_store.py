"""A server is started on a store that is damaged, or that it cannot have."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.store.database import log_of
from headrace.compiler.store.storeformat import FORMAT
from tests.whole.arrived import Arrived
from tests.whole.durable.customers import PIPELINE
from tests.whole.durable.lives import Lives, kill, pipeline
from tests.whole.gate import Gate

KEPT = range(50)
"""Posted one by one while the output waits."""


def of_a_newer_format(file: Path) -> str:
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    return f"the store is of version {FORMAT + 1}, and this headrace knows versions up to {FORMAT}"


def not_writable(file: Path) -> str:
    """Have something else where its folder would be: a mode keeps nobody out who is root."""
    for each in file.parent.iterdir():
        each.unlink()
    file.parent.rmdir()
    file.parent.write_text("not a folder")
    return f"the store '{file.parent}' cannot be written: "


@pytest.mark.parametrize("spoil", [of_a_newer_format, not_writable])
def test_one_that_it_cannot_have_refuses_the_start_in_words(
    tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    lives = Lives(tmp_path, [pipeline()])
    with lives.life() as server:
        assert server.post(PIPELINE, {"n": 1}).status == 202
        assert server.stop() == 0
    folder = tmp_path / "data" / "store"
    said = spoil(folder / "0" / "store.db")
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}

    ended = lives.run()

    assert (ended.returncode, ended.stdout) == (1, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()} == before


def an_entry(file: Path) -> str:
    """Damage the tenth."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1 WHERE first = 10")
    return "1 entries of queue 1 from 10 on are damaged: they are set aside"


def the_database(file: Path) -> str:
    file.write_bytes(b"something else" * 1000)
    return "is damaged (file is not a database): it is kept as"


def the_log(file: Path) -> str:
    """Flip a bit in the middle: SQLite drops what is behind it without a word."""
    log = log_of(file)
    octets = bytearray(log.read_bytes())
    octets[len(octets) // 2] ^= 1
    log.write_bytes(octets)
    return f"the log of '{file}': "


def the_end_of_the_log(file: Path) -> None:
    """Tear it off, within what was written last."""
    log = log_of(file)
    log.write_bytes(log.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "least"),
    [
        (an_entry, 49),
        (the_database, 0),
        pytest.param(the_log, 1, marks=pytest.mark.long),
        pytest.param(the_end_of_the_log, 45, marks=pytest.mark.long),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_one_that_is_damaged_is_told_and_the_start_goes_on(
    tmp_path: Path, gate: Gate, spoil: Callable[[Path], str | None], least: int
) -> None:
    lives = Lives(tmp_path, [pipeline(outputs=[{**gate.output(PIPELINE), "retry": {}}])])
    with lives.life() as server:
        client = server.client()
        assert {client.post(PIPELINE, {"n": number}).status for number in KEPT} == {202}
        kill(server)
    said = spoil(tmp_path / "data" / "store" / "0" / "store.db")
    gate.is_open.set()

    with lives.life() as server:
        assert server.get("/readyz").status == 200
        assert server.post(PIPELINE, {"n": 1000}).status == 202
        taken: Arrived = gate.taken[PIPELINE]
        taken.wait_for([1000])
        damaged = server.metric("headrace_store_damaged_total")
        [part] = server.get("/api/stored").value
        assert server.stop() == 0

    there = taken.counts.keys() - {1000}
    assert least <= len(there) <= len(KEPT)
    assert there <= {*KEPT}
    if spoil is an_entry:
        assert (damaged, part["aside"], there) == (1, 1, {*KEPT} - {10})
    errors = [line for line in str(server.err).splitlines() if " ERROR " in line]
    assert len(errors) == (said is not None), errors
    assert said is None or said in errors[0]
