"""The format on disk: a store that was recorded once is read for ever, and the page about it is right."""

from __future__ import annotations

import asyncio
import lzma
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store import historytable
from headrace.compiler.store.database import Database
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import FoundLetter, WholeLetter
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeformat import FORMAT
from tests.compiler.remembering import contents, declared, opened
from tests.compiler.store.recording import (
    CONTENT,
    DAMAGED,
    EMPTY,
    ENDED,
    ID,
    LETTERS,
    REMEMBERED,
    read,
    recorded,
)
from tests.rooms import REPOSITORY
from tests.virtual import virtual

RECORDED = sorted((Path(__file__).parent / "recorded").iterdir())
PAGE = (REPOSITORY / "docs" / "store-format.md").read_text()


def content(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes())


def test_every_format_is_recorded() -> None:
    versions = range(1, FORMAT + 1)
    assert [each.name for each in RECORDED] == [f"format-{each}.db.xz" for each in versions]


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name)
@virtual
async def test_a_recorded_store_is_read(tmp_path: Path, file: Path) -> None:
    (tmp_path / "store.db").write_bytes(content(file))
    clock = Clock(asyncio.get_running_loop())
    told: list[str] = []
    store = await Store.open(clock, tmp_path, keep_free_bytes=0, reserve_bytes=0, tell=told.append)

    for which, (key, payloads) in enumerate(CONTENT.items()):
        journal = await Journal.open(store, *key, 2**30)
        entries = await read(journal, len(payloads))
        assert [each.payload for each in entries] == payloads
        assert [each.number for each in entries] == [*range(len(payloads))]
        assert {each.deaths for each in entries} == {1 - which}
        assert {each.at for each in entries} == {1_767_225_600 + which / 4}
    for key, number in [(EMPTY, 5), (DAMAGED, 1), (ENDED, 0)]:
        queue = await store.queues.open(*key)
        assert (queue.entries, queue.next) == (0, number)
    [ended] = [each for each in await store.queues.listed() if each.ended is not None]
    assert (ended[1:4], ended.entries, ended.ended) == (ENDED, 1, 1_767_225_600.5)
    assert store.id == ID
    records = Records(store)
    for id, (letter, body) in enumerate(LETTERS.items(), 1):
        found = FoundLetter(id, letter, len(body))
        assert await records.letter(id) == WholeLetter(found, body)
    assert {each.letters for each in await records.signatures()} == {1}
    assert store.last_letter == 3
    assert contents(await declared(store, clock)) == [*REMEMBERED.items()]
    assert told == []
    await store.close()


@virtual
async def test_a_store_that_has_no_table_of_buckets_gets_it(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(content(RECORDED[0]))
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript("DROP TABLE remembered; DELETE FROM queues WHERE kind = 'bucket'")
    store = await opened(tmp_path)
    bucket = await declared(store)
    assert contents(bucket) == []

    bucket.merge(REMEMBERED)
    await store.close()

    store = await opened(tmp_path)
    assert contents(await declared(store)) == [*REMEMBERED.items()]
    await store.close()


@virtual
async def test_a_store_that_has_no_tables_of_letters_gets_them(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(content(RECORDED[0]))
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(
            "DROP TABLE letters; DROP TABLE bodies; DROP TABLE signatures; PRAGMA user_version = 1"
        )
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, tmp_path, keep_free_bytes=0, reserve_bytes=0)

    records = Records(store)
    letter, body = next(iter(LETTERS.items()))
    await records.append(letter, body, 2**30).stored()
    assert await records.letter(1) == WholeLetter(FoundLetter(1, letter, len(body)), body)
    [key, *_], [payloads, *_] = CONTENT.keys(), CONTENT.values()
    journal = await Journal.open(store, *key, 2**30)
    assert [each.payload for each in await read(journal, len(payloads))] == payloads
    await store.close()


def rows(file: bytes) -> dict[str, list[tuple[object, ...]]]:
    """Return all that a database has, by table; and how the tables were made."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(file[:18] + b"\1\1" + file[20:])  # as if without a log
        made = database.execute("SELECT name, sql FROM sqlite_master").fetchall()
        tables = [name for name, sql in made if sql and sql.startswith("CREATE TABLE")]
        # The first stores of format 1 had 0 where nothing is taken, and not the time with a minus.
        database.execute("UPDATE entries SET taken = 0 WHERE taken < 0")
        found = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
        return {**found, "": made}


def test_what_is_written_is_of_the_format_that_is_recorded() -> None:
    assert rows(recorded()) == rows(content(RECORDED[-1]))


def test_the_page_has_every_table_and_column() -> None:
    database = Database(None, "power", lambda: 0)
    database.write(lambda run: historytable.write(run, []))
    ours = "type = 'table' AND name NOT LIKE 'sqlite_%'"
    made = database._run.execute(f"SELECT name FROM sqlite_master WHERE {ours}").fetchall()
    columns = {
        name: [row[1] for row in database._run.execute(f"PRAGMA table_info({name})")]
        for [name] in made
    }
    database.close()

    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert columns == {
        table: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) for table, text in sections
    }
    assert f"format {FORMAT}" in PAGE


def test_what_the_page_shows_reads_the_entries(tmp_path: Path) -> None:
    [script, _] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    file = tmp_path / "store.db"
    file.write_bytes(recorded())
    printed: list[tuple[object, ...]] = []
    said = {"print": lambda *each: printed.append(each)}
    exec(script.replace("copy/store.db", str(file)), said)

    assert [row[3] for row in printed] == [
        *(each for of in CONTENT.values() for each in of),
        b"left",
    ]
    assert {row[2] for row in printed} == {True}
