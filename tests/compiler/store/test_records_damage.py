"""Bits that flip in a database with dead letters: nothing wrong is given, and what is lost is told."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import FoundLetter, Letter
from headrace.compiler.store.storeerrors import StoreFailed
from tests.compiler.store.letters import PLAIN, ROOM, ids, letter, opened, put_down
from tests.virtual import virtual

COUNT = 300
TIMES = 150


def known(id: int) -> Letter:
    """Return the letter that has an id."""
    return letter(message=f"number {id % 7}", detail=f"{id} of {COUNT}", component=id % 3)


def body(id: int) -> bytes:
    return b"%d:" % id * (id % 50)


@virtual
async def fill(folder: Path) -> None:
    store = await opened(folder)
    records = Records(store)
    for id in range(1, COUNT + 1):
        group = records.append(known(id), body(id), ROOM)
    await group.stored()
    await store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("letters") / "store"
    fill(folder)
    return folder


def flip(file: Path, choice: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[choice.randrange(len(content))] ^= 1 << choice.randrange(8)
    file.write_bytes(content)


@virtual
async def look(folder: Path, counts: Counter[str]) -> None:
    """Look at all that is there, then delete it."""
    told: list[str] = []
    store = await opened(folder, told)
    records = Records(store)
    seen, damaged, before = set[int](), set[int](), 2**62
    while True:
        page = await records.page("press-line", before=before)
        for one in page.letters:
            assert one == FoundLetter(one.id, known(one.id), len(body(one.id)))
            seen.add(one.id)
        damaged.update(page.damaged)
        before = page.before
        if not page.is_truncated:
            break
    there = set[int]()
    for id in range(1, COUNT + 1):
        whole = await records.letter(id)
        if whole is not None and None not in whole:
            there.add(id)
            assert whole == (FoundLetter(id, known(id), len(body(id))), body(id))
    alike = await records.signatures("press-line")
    assert {(each.message, each.component) for each in alike} <= {
        (known(id).message, known(id).component) for id in range(21)
    }
    lost = COUNT - len(there)
    assert told or not lost
    assert told or seen == there
    counts[f"{'told' if told else 'not told'}, {'lost' if lost else 'all there'}"] += 1
    await records.delete_all("press-line")
    for each in records.pipelines():
        await records.delete_all(each)
    await put_down(records, b"after")
    assert (await ids(records))[0] > max(there, default=0)
    await store.close()


def test_what_a_flipped_bit_costs_is_told_and_nothing_wrong_is_given(
    tmp_path: Path, filled: Path
) -> None:
    choice, counts = random.Random(11), Counter[str]()
    for _ in range(TIMES):
        copy = tmp_path / "store"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(filled, copy)
        flip(copy / "store.db", choice)
        look(copy, counts)
    print(counts)
    assert counts["told, lost"] > 0


@virtual
async def test_a_damaged_letter_is_told_once_and_can_be_deleted(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await put_down(Records(store), b"a", b"b", b"c", b"d")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE letters SET detail = 'wrong' WHERE id = 1")
        database.execute("UPDATE bodies SET body = x'00' WHERE id = 2")
        database.execute("DELETE FROM bodies WHERE id = 3")

    told: list[str] = []
    store = await opened(tmp_path, told)
    records = Records(store)
    for _ in range(2):
        page = await records.page("press-line")
        assert ([each.id for each in page.letters], page.damaged) == ([4, 3, 2], [1])
        assert page.total == 4
        found = [await records.letter(id) for id in range(1, 5)]
        assert found == [
            (None, b"a"),
            (FoundLetter(2, PLAIN, 1), None),
            (FoundLetter(3, PLAIN, 1), None),
            (FoundLetter(4, PLAIN, 1), b"d"),
        ]
    assert told == [f"letter {id} is damaged" for id in (1, 2, 3)]
    assert store.condition.damaged == 3
    await records.update(1, 2, 3.0, maybe_written=True)  # stays as it is
    assert (await records.letter(1)) == (None, b"a")
    assert (await records.delete("press-line", [1, 2, 3])).letters == 3
    assert await ids(records) == [4]
    await store.close()


@virtual
async def test_what_failed_alike_has_texts_that_were_written(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await put_down(Records(store), b"a", b"b")
    await put_down(Records(store), b"c", stage="input")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE signatures SET message = 'wrong'")
        database.execute("UPDATE letters SET message = 'wrong' WHERE id IN (1, 3)")

    store = await opened(tmp_path)
    [alike] = await Records(store).signatures()
    assert (alike.stage, alike.message, alike.letters) == ("output", PLAIN.message, 2)
    await store.close()


@virtual
async def test_letters_outlive_a_database_that_is_made_anew(tmp_path: Path) -> None:
    told: list[str] = []
    store = await opened(tmp_path, told)
    records = Records(store)
    await put_down(records, *[b"a"] * 20, b"x" * 400_000, pipeline="größe", messages=2)
    await put_down(records, b"last")
    await records.delete("press-line", [22])
    amounts = dict(records.amounts("größe"))
    signatures = await records.signatures()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        [page] = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'letters_of_pipeline'"
        ).fetchone()
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))

    store = await opened(tmp_path, told)
    records = Records(store)
    page_of_all = await records.page("größe")
    assert [each.id for each in page_of_all.letters] == [*range(21, 0, -1)]
    assert "of its rows 21 could be read" in " ".join(told)
    assert records.amounts("größe") == amounts
    assert await records.signatures() == signatures
    whole = await records.letter(21)
    assert whole is not None
    assert whole.body == b"x" * 400_000
    await put_down(records, b"new")
    assert await ids(records) == [23]
    await store.close()


@pytest.mark.parametrize(
    ("table", "word", "wrong"),
    [
        ("signatures", "messages", "messag3s"),
        ("signatures", "last_seen", "last_sden"),  # which an index names
        ("letters", "detail", "deta1l"),
    ],
)
@virtual
async def test_where_tables_are_called_otherwise_they_are_made_anew(
    tmp_path: Path, table: str, word: str, wrong: str
) -> None:
    told: list[str] = []
    store = await opened(tmp_path, told)
    await put_down(Records(store), b"a", b"b")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as run, run:
        run.execute("PRAGMA writable_schema = ON")
        renamed = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?"
        run.execute(renamed, (word, wrong, table))

    store = await opened(tmp_path, told)
    records = Records(store)
    await put_down(records, b"c")
    listed = await ids(records)
    alike = await records.signatures("press-line")
    await store.close()

    assert sorted(listed) == [1, 2, 3]
    assert sum(each.letters for each in alike) == 3
    assert "is damaged (" in " ".join(told)


@virtual
async def test_what_cannot_be_read_is_no_page(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    records = Records(store)
    await put_down(records, b"a")
    store.database._run.close()
    with pytest.raises(StoreFailed):
        await records.page("press-line")

    assert store.condition.state == "failing"
    await store.close()
