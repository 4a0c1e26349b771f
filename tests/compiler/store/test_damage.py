"""A log that is torn, bits that flip: a store opens, gives nothing wrong, and tells what is lost."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.store.database import PAGE_BYTES, log_of
from headrace.compiler.store.journal import Journal
from tests.compiler.store.filled import Filled, Found, fill, look, opened
from tests.virtual import virtual

TIMES = 200


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    made: list[Filled] = []
    fill(tmp_path_factory.mktemp("filled") / "store", made)
    return made[0]


def found_in(folder: Path) -> Found:
    found: list[Found] = []
    look(folder, found)
    return found[0]


def flip(file: Path, choice: random.Random) -> int:
    """Flip one bit; return in which byte."""
    content = bytearray(file.read_bytes())
    where = choice.randrange(len(content))
    content[where] ^= 1 << choice.randrange(8)
    file.write_bytes(content)
    return where


def cut(content: bytes, where: int) -> bytes:
    return content[:where]


def overwritten(content: bytes, where: int) -> bytes:
    return content[:where] + random.Random(where).randbytes(len(content) - where)


def zeroed(content: bytes, where: int) -> bytes:
    return content[:where] + bytes(len(content) - where)


@pytest.mark.parametrize("tear", [cut, overwritten, zeroed])
def test_all_before_a_tear_of_the_log_is_whole(
    tmp_path: Path, filled: Filled, tear: Callable[[bytes, int], bytes]
) -> None:
    choice = random.Random(5)
    for _ in range(TIMES // 3 + 1):
        copy = filled.copy(tmp_path / "store")
        log = log_of(copy.file)
        content = log.read_bytes()
        where = len(content) - int(len(content) * choice.random() ** 3)
        log.write_bytes(tear(content, where))

        found = found_in(copy.folder)
        assert found.is_right()
        assert [each.number for each in found.entries] == [*range(len(found.entries))]
        assert len(found.entries) >= copy.least(where)


def test_what_a_flipped_bit_of_the_log_costs_is_told(tmp_path: Path, filled: Filled) -> None:
    choice, counts = random.Random(7), Counter[str]()
    for _ in range(TIMES):
        copy = filled.copy(tmp_path / "store")
        where = flip(log_of(copy.file), choice)

        found = found_in(copy.folder)
        assert found.is_right()
        assert [each.number for each in found.entries] == [*range(len(found.entries))]
        assert len(found.entries) >= copy.least(where)
        is_told = any("the log of" in text for text in found.told)
        assert is_told == (len(found.entries) < copy.entries)
        assert found.damaged == is_told
        counts["told" if is_told else "nothing lost"] += 1
    print(counts)


def test_what_a_flipped_bit_of_the_database_costs_is_told(tmp_path: Path, filled: Filled) -> None:
    choice, counts = random.Random(9), Counter[str]()
    for _ in range(TIMES):
        copy = filled.copy(tmp_path / "store")
        flip(copy.file, choice)

        found = found_in(copy.folder)
        assert found.is_right()
        assert found.is_in_order()
        lost = copy.entries - len(found.entries)
        if lost:
            assert found.told or found.left_over == lost
        counts[f"{'told' if found.told else 'not told'}, {'lost' if lost else 'all there'}"] += 1
    print(counts)


@pytest.mark.parametrize("mask", [0x80, 0x02])
def test_a_flipped_bit_of_what_tables_are_called_is_damage_as_any_other(
    tmp_path: Path, filled: Filled, mask: int
) -> None:
    """The eighth bit makes a name one that is no UTF-8."""
    settled, counts = filled.copy(tmp_path / "settled"), Counter[str]()
    with closing(sqlite3.connect(settled.file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    page = settled.file.read_bytes()[:PAGE_BYTES]
    for where in range(page.index(b"CREATE") - 40, PAGE_BYTES, 31):
        copy = settled.copy(tmp_path / "store")
        content = bytearray(copy.file.read_bytes())
        content[where] ^= mask
        copy.file.write_bytes(content)

        found = found_in(copy.folder)
        assert found.is_right()
        assert found.is_in_order()
        lost = copy.entries - len(found.entries)
        is_kept = (copy.folder / "store.db.damaged-1").exists()
        assert is_kept == any("is damaged (" in text for text in found.told)
        assert not lost or is_kept
        counts[f"{'told' if found.told else 'not told'}, {'lost' if lost else 'all there'}"] += 1
        counts["not UTF-8"] += any("is damaged (not UTF-8: " in text for text in found.told)
    print(counts)
    assert bool(counts["not UTF-8"]) == (mask == 0x80)


@pytest.mark.parametrize("name", [b"n INTEGER", b"queue INTEGER", b"body BLOB"])
def test_of_a_table_with_a_column_whose_name_is_damaged_all_rows_are_read(
    tmp_path: Path, filled: Filled, name: bytes
) -> None:
    copy = filled.copy(tmp_path / "store")
    with closing(sqlite3.connect(copy.file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(copy.file.read_bytes())
    content[content.index(name, content.index(b"CREATE TABLE entries"))] ^= 0x80
    copy.file.write_bytes(content)

    found = found_in(copy.folder)
    assert any("is damaged (" in text for text in found.told)
    assert found.is_right()
    assert len(found.entries) == copy.entries


@pytest.mark.parametrize(
    "content",
    [bytes(PAGE_BYTES), random.Random(1).randbytes(PAGE_BYTES)],
    ids=["zeroed", "overwritten"],
)
def test_a_page_of_the_database_that_is_overwritten_costs_what_is_there_and_behind_it(
    tmp_path: Path, filled: Filled, content: bytes
) -> None:
    pages = filled.file.stat().st_size // PAGE_BYTES
    large = range(12, pages - 10)  # the entry that goes over many
    for page in set(range(pages)) - set(large):
        copy = filled.copy(tmp_path / "store")
        with copy.file.open("r+b") as file:
            file.seek(page * PAGE_BYTES)
            file.write(content)

        found = found_in(copy.folder)
        assert found.is_right()
        assert found.is_in_order()
        lost = copy.entries - len(found.entries)
        # A page that the log has as well costs nothing.
        assert lost == 0 or found.told
        assert lost < copy.entries / 10 or found.left_over == lost


def test_nothing_is_told_of_what_is_not_damaged(tmp_path: Path, filled: Filled) -> None:
    found = found_in(filled.copy(tmp_path / "store").folder)

    assert found.told == []
    assert found.is_right()
    assert len(found.entries) == filled.entries


@virtual
async def test_entries_of_which_the_queue_is_damaged_can_be_looked_at(tmp_path: Path) -> None:
    told: list[str] = []
    store = await opened(tmp_path, told)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    await journal.append(b"a").stored()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET queue = -5")

    store = await opened(tmp_path, told)
    [unknown] = [each for each in await store.queues.listed() if each.pipeline == ""]
    journal = await Journal.open(store, *unknown[1:4], 2**40)
    journal.stop()
    assert await journal.read() == []
    assert told == ["1 entries of queue -5 from 0 on are damaged: they are set aside"]
    await store.close()
