"""A stopped store is looked at: it finds what a server would come upon, and changes nothing."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from headrace.compiler.store import historytable
from headrace.compiler.store.database import PAGE_BYTES, log_of
from headrace.compiler.store.historytable import HistoryRow
from headrace.compiler.store.inspection import Inspection
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.storesubjects import damages
from tests.compiler.remembering import declared
from tests.compiler.remembering import stored as remembered
from tests.compiler.store.filled import Filled, fill, look, opened
from tests.compiler.store.letters import PLAIN, ROOM
from tests.compiler.store.test_damage import flip
from tests.virtual import virtual

TIMES = 40


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    made: list[Filled] = []
    fill(tmp_path_factory.mktemp("filled") / "store", made)
    return made[0]


def is_damaged(folder: Path) -> bool:
    """Return whether something damaged is found; nothing may change by that."""
    before = {each: each.read_bytes() for each in folder.iterdir()}
    try:
        with closing(Inspection(folder)) as store:
            found = bool(store.lost_commits) or bool(store.read(lambda run: [*damages(run)]))
    except sqlite3.Error:
        found = True
    assert {each: each.read_bytes() for each in folder.iterdir()} == before
    return found


def compared(copy: Filled, counts: Counter[str]) -> None:
    """Look at a store, then open it as a server does."""
    found = is_damaged(copy.folder)
    opened: list[object] = []
    look(copy.folder, opened)  # type: ignore[arg-type]
    [server] = opened
    is_lost = len(server.entries) < copy.entries or bool(server.told)  # type: ignore[attr-defined]
    assert found or not is_lost
    counts[f"{'found' if found else 'not found'}, {'lost' if is_lost else 'all there'}"] += 1


@pytest.mark.long
@pytest.mark.parametrize("part", ["log", "database"])
def test_what_a_flipped_bit_costs_a_server_is_found(
    tmp_path: Path, filled: Filled, part: str
) -> None:
    choice, counts = random.Random(9), Counter[str]()
    for _ in range(TIMES):
        copy = filled.copy(tmp_path / "store")
        flip(copy.file if part == "database" else log_of(copy.file), choice)
        compared(copy, counts)
    print(counts)
    assert counts["found, lost"] > TIMES / 2


@pytest.mark.long
def test_what_an_overwritten_page_costs_a_server_is_found(tmp_path: Path, filled: Filled) -> None:
    counts = Counter[str]()
    for page in (0, 1, 2, 3, 5, 8):
        copy = filled.copy(tmp_path / "store")
        with copy.file.open("r+b") as file:
            file.seek(page * PAGE_BYTES)
            file.write(random.Random(1).randbytes(PAGE_BYTES))
        compared(copy, counts)
    print(counts)
    assert counts["found, lost"]


def test_what_is_not_damaged_is_not_found(tmp_path: Path, filled: Filled) -> None:
    assert not is_damaged(filled.copy(tmp_path / "store").folder)


@virtual
async def fill_tables(folder: Path) -> None:
    """Fill the tables of letters, buckets and history."""
    store = await opened(folder, [])
    records = Records(store)
    for number in range(200):
        one = PLAIN._replace(detail=f"{number} of 200", component=number % 3)
        group = records.append(one, b"%d:" % number * (number % 50), ROOM)
    await group.stored()
    rows = [
        HistoryRow(f"p{number % 20}", 60, number // 20 * 3600, f"[0,0,{number},7,0]")
        for number in range(400)
    ]
    await store.write_new(partial(historytable.write, rows=rows), 100_000)
    bucket = await declared(store)
    bucket.merge({f"m{number}": {"count": number} for number in range(400)})
    await remembered(bucket)
    await store.close()


def contents(folder: Path) -> list[list[tuple[object, ...]]] | None:
    """Return what tables have whose rows have checksums; None: it cannot be read."""
    try:
        with closing(sqlite3.connect(folder / "store.db")) as database:
            database.text_factory = bytes
            return [
                database.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
                for table in ("letters", "bodies", "signatures", "history", "remembered")
            ]
    except sqlite3.Error:
        return None


@pytest.mark.long
def test_a_flipped_bit_of_letters_buckets_and_history_is_found(tmp_path: Path) -> None:
    whole, choice, counts = tmp_path / "whole", random.Random(4), Counter[str]()
    fill_tables(whole)
    known = contents(whole)
    assert known is not None
    for _ in range(2 * TIMES):
        copy = Filled(whole, [], 0).copy(tmp_path / "store")
        flip(copy.file, choice)
        found = is_damaged(copy.folder)
        is_other = contents(copy.folder) != known
        assert found or not is_other or only_times_of_signatures(copy.folder, known)
        counts[f"{'found' if found else 'not found'}, {'other' if is_other else 'the same'}"] += 1
    print(counts)
    assert counts["found, other"] > TIMES / 2


def only_times_of_signatures(folder: Path, known: list[list[tuple[object, ...]]]) -> bool:
    """Return whether what differs is when something failed first and last, which has no checksum."""
    found = contents(folder)
    assert found is not None
    for tables in (known, found):
        tables[2] = [row[:-2] for row in tables[2]]
    return known == found
