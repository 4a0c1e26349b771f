"""`headrace store`: what is told, checked, written out and given up of the store of a stopped server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.runtime.storage import FOLDER
from headrace.compiler.runtime.storedarrival import packed
from headrace.compiler.store import historytable
from headrace.compiler.store.historytable import HistoryRow
from headrace.compiler.store.inspection import Inspection
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.openstore import Store
from headrace.web.commands import stoppedstore
from headrace.web.commands.cli import commands
from tests.compiler.remembering import declared, stored
from tests.compiler.store.killed import kill
from tests.compiler.store.letters import letter
from tests.server import run

ROOM = 2**40
AT = 1_767_225_600_000
BATCH = b'[{"n":1.2300},{"n":2}]'
ENTRY = len(BATCH).to_bytes(4, "little") + BATCH


async def keep(folder: Path, *, is_killed: bool = True) -> None:
    """Leave some of everything in the store of a directory."""
    clock = Clock(asyncio.get_running_loop())
    path = folder.joinpath(*FOLDER)
    store = await Store.open(clock, path, keep_free_bytes=0, reserve_bytes=0)
    journal = await Journal.open(store, "größe", "http", "journal", ROOM)
    for payload in (b'{"secret": 1}', b"\xff"):
        await journal.append(packed(payload, {"method": "POST"}, AT * 1000)).stored()
    queue = await Journal.open(store, "out", "postgres db/t", "queue", ROOM)
    for _ in range(300):
        group = queue.append(ENTRY)
    await group.stored()
    await queue.read()  # they are under way
    aside = await Journal.open(store, "ended", "http", "journal", ROOM)
    await aside.append(packed(b"1", {}, AT * 1000)).stored()
    [one] = await aside.read()
    aside.set_aside(one.number)
    await store.written()
    await aside.append(packed(b"2", {}, AT * 1000)).stored()
    await aside.end()
    large = await Journal.open(store, "large", "http", "journal", ROOM)
    for number in range(3):
        await large.append(packed(b"%d" % number * 600_000, {}, AT * 1000)).stored()
    records = Records(store)
    await records.append(letter(pipeline="out", component=0), ENTRY, ROOM).stored()
    arrival = packed(b"no JSON\n", {}, AT * 1000)
    await records.append(letter(component=None, stage="input"), arrival, ROOM).stored()
    bucket = await declared(store)
    bucket.merge({"m1": {"temp": 21.5}, "m2\0": {"mode": "läuft"}})
    await stored(bucket)
    row = HistoryRow("größe", 60, AT // 1000, "[1767225600,0,5,5,0]")
    await store.write_new(partial(historytable.write, rows=[row]), 100)
    await clock.sleep(5)
    if is_killed:
        kill(store)
    else:
        await store.close()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    run_virtual(lambda: keep(tmp_path))
    return tmp_path


def invoked(*args: object) -> Result:
    return CliRunner().invoke(commands, ["store", *map(str, args)])


def files(folder: Path) -> dict[str, bytes]:
    """Return what is in the store of a directory, byte by byte."""
    return {each.name: each.read_bytes() for each in folder.joinpath(*FOLDER).iterdir()}


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def damage(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder.joinpath(*FOLDER, "store.db"))) as database, database:
        for each in statements:
            database.execute(each)


def test_it_is_told_how_much_is_kept_and_nothing_of_what_it_is(kept: Path) -> None:
    before = files(kept)

    told = json.loads(invoked("show", kept, "--format", "json").stdout)
    text = invoked("show", kept)

    assert [(each["id"], each["part"], each["entries"]) for each in told["parts"]] == [
        (1, "journal", 2),
        (2, "queue", 300),
        (3, "journal", 1),
        (4, "journal", 3),
    ]
    assert told["parts"][0]["pipeline_id"] == "größe"
    assert [each["ended"] is None for each in told["parts"]] == [True, True, False, True]
    [bucket] = told["buckets"]
    assert (bucket["id"], bucket["bucket"], bucket["keys"]) == (5, "machines", 2)
    [aside] = told["aside"]
    assert (aside["id"], aside["pipeline_id"], aside["why"]) == (3, "ended", "process")
    assert [(each["pipeline_id"], each["count"]) for each in told["dead_letters"]] == [
        ("out", 1),
        ("press-line", 1),
    ]
    assert told["history"] == [{"pipeline_id": "größe", "rows": 1, "bytes": 25, "oldest": AT}]
    assert (told["format"], told["is_closed"], told["others"]) == (1, False, [])
    assert text.exit_code == 0
    rows = [" ".join(line.split()) for line in text.stdout.splitlines()]
    assert "ID PIPELINE TARGET PART ENTRIES BYTES OLDEST ENDED" in rows
    assert "2 out postgres db/t queue 300 9,000 2026-01-01T00:00:00+00:00 -" in rows
    assert "secret" not in text.stdout
    assert files(kept) == before


def test_a_table_that_nobody_knows_is_told_by_its_name(kept: Path) -> None:
    damage(kept, "CREATE TABLE later (a)", "INSERT INTO later VALUES (1)")

    told = json.loads(invoked("show", kept, "--format", "json").stdout)

    assert told["others"] == [{"table": "later", "rows": 1}]
    assert invoked("check", kept).exit_code == 0


def test_what_is_not_damaged_is_found_to_be_whole(kept: Path) -> None:
    before = files(kept)

    result = invoked("check", kept)

    assert (result.exit_code, result.stdout) == (0, "nothing is damaged\n")
    assert files(kept) == before


def test_each_damage_is_told_with_its_place(kept: Path) -> None:
    damage(
        kept,
        "UPDATE entries SET body = x'00' WHERE n = 1",
        "UPDATE entries SET queue = 77 WHERE n = 2",
        "UPDATE aside SET at = 1",
        "UPDATE letters SET detail = 'wrong' WHERE id = 1",
        "UPDATE bodies SET body = x'00' WHERE id = 2",
        "INSERT INTO bodies VALUES (9, 0, x'00')",
        "UPDATE signatures SET message = 'wrong' WHERE pipeline = 'out'",
        "UPDATE signatures SET letters = 5 WHERE pipeline = 'press-line'",
        "UPDATE remembered SET value = '1 2 3 {}' WHERE key = 'm1'",
        "INSERT INTO remembered VALUES (99, 'm1', '1 2 3 {}')",
        "UPDATE history SET counts = '[1,0,9,9,9]'",
        "UPDATE store SET id = ''",
    )

    result = invoked("check", kept, "--format", "json")

    found = [(each["place"], each["found"]) for each in json.loads(result.stdout)]
    signatures = [place for place, _ in found if place.startswith("signature")]
    assert len({*signatures}) == 2
    assert [each for each in found if each[0] not in signatures] == [
        ("table store", "has 1 rows with an id, and not one"),
        ("row 1 of entries, part 1", "its checksum is wrong"),
        ("row 2 of entries, part 77", "its checksum is wrong"),
        ("key 'm1' of bucket 'machines'", "its checksum is wrong"),
        ("keys of bucket 99", "there is no bucket that they are of"),
        ("row 1 of aside, part 3", "its checksum is wrong"),
        ("letter 1", "its checksum is wrong"),
        ("body of letter 2", "it is gone, or its checksum is wrong"),
        ("body of letter 9", "there is no such letter"),
        ("row of history of 'größe', 60 s, 1767225600", "its checksum is wrong"),
    ]
    assert result.exit_code == 1


def test_the_entries_of_a_part_are_written_one_a_line(kept: Path, tmp_path: Path) -> None:
    before, file = files(kept), tmp_path / "out.jsonl"

    journal, queue, ended = (invoked("export", kept, part) for part in (1, 2, 3))
    written = invoked("export", kept, 2, "-o", file)

    assert [journal.exit_code, queue.exit_code, ended.exit_code, written.exit_code] == [0] * 4
    metadata = {"method": "POST", "received_at": "2026-01-01T00:00:00.000000+00:00"}
    known = {"pipeline_id": "größe", "target": "http", "part": "journal", "stored_at": AT}
    assert lines(journal) == [
        {
            **{"stored_id": 1, **known, "number": 0, "payload": '{"secret": 1}'},
            **{"payload_encoding": "utf-8", "is_message": False, "metadata": metadata},
        },
        {
            **{"stored_id": 1, **known, "number": 1, "payload": "/w=="},
            **{"payload_encoding": "base64", "is_message": False, "metadata": metadata},
        },
    ]
    assert [each["number"] for each in lines(queue)] == [*range(300)]
    assert queue.stdout.count('"messages":[{"n":1.2300},{"n":2}]') == 300
    assert [(each["payload"], each.get("set_aside")) for each in lines(ended)] == [
        ("2", None),
        ("1", "process"),
    ]
    assert [each["payload"][:2] for each in lines(invoked("export", kept, 4))] == ["00", "11", "22"]
    assert file.read_text() == queue.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert "300 entries written" in written.stderr
    assert files(kept) == before


def test_the_keys_of_a_bucket_are_written_one_a_line(kept: Path) -> None:
    before = files(kept)

    found = invoked("export", kept, 5)

    assert [(each["bucket"], each["key"], each["values"]) for each in lines(found)] == [
        ("machines", "m1", {"temp": 21.5}),
        ("machines", "m2\0", {"mode": "läuft"}),
    ]
    assert {each["stored_id"] for each in lines(found)} == {5}
    assert "2 entries written" in found.stderr
    assert files(kept) == before
    damage(kept, "UPDATE remembered SET value = '1 2 3 {}' WHERE key = 'm1'")
    found = invoked("export", kept, 5)
    assert [each["key"] for each in lines(found)] == ["m2\0"]
    assert (found.exit_code, "key 'm1' is damaged" in found.stderr) == (1, True)
    given_up = invoked("discard", kept, 5)
    assert given_up.stdout.startswith("discarded bucket 5 'machines': 2 keys, ")
    assert json.loads(invoked("show", kept, "--format", "json").stdout)["buckets"] == []


def test_dead_letters_are_written_one_a_line(kept: Path) -> None:
    found = invoked("export", kept, "--dead-letters")
    one = invoked("export", kept, "--dead-letters", "--pipeline", "out")
    none = invoked("export", kept, "--dead-letters", "--pipeline", "nobody")

    assert [each["id"] for each in lines(found)] == [1, 2]
    assert '"messages":[{"n":1.2300},{"n":2}]' in one.stdout
    second = lines(found)[1]
    assert (second["payload"], second["is_message"], second["class"]) == (
        "no JSON\n",
        False,
        "invalid",
    )
    assert [each["id"] for each in lines(one)] == [1]
    assert (none.exit_code, none.stdout) == (5, "")


def test_what_is_damaged_is_left_out_and_told(kept: Path) -> None:
    damage(
        kept,
        "UPDATE entries SET body = x'00' WHERE n = 1",
        "UPDATE aside SET at = 1",
        "UPDATE letters SET detail = 'wrong' WHERE id = 1",
    )

    aside = invoked("export", kept, 3)
    entries, letters = invoked("export", kept, 1), invoked("export", kept, "--dead-letters")

    assert (entries.exit_code, letters.exit_code) == (1, 1)
    assert [each["number"] for each in lines(entries)] == [1]
    assert entries.stderr.startswith("row 1: 1 entries are damaged\n")
    assert (aside.exit_code, [each["payload"] for each in lines(aside)]) == (1, ["2"])
    assert "which was set aside (process), is damaged\n" in aside.stderr
    assert [each["id"] for each in lines(letters)] == [2]
    assert letters.stderr.startswith("letter 1 is damaged\n")


def test_a_part_is_given_up_and_nothing_else(kept: Path) -> None:
    result = invoked("discard", kept, 3)

    assert (result.exit_code, result.stdout) == (
        0,
        "discarded journal 3 of pipeline 'ended' (http): 1 entries, 18 bytes, and 1 that were"
        " set aside (process)\n",
    )
    told = json.loads(invoked("show", kept, "--format", "json").stdout)
    assert [(each["id"], each["entries"]) for each in told["parts"]] == [(1, 2), (2, 300), (4, 3)]
    assert told["aside"] == []
    assert told["is_closed"]
    again = invoked("discard", kept, 3)
    assert (again.exit_code, again.stderr) == (
        5,
        "there is no part 3 in the store: expected one of 1, 2, 4, 5\n",
    )


def test_no_export_is_written_where_the_store_is(kept: Path, tmp_path: Path) -> None:
    store, before = kept.joinpath(*FOLDER), files(kept)
    link, folder = tmp_path / "link.jsonl", tmp_path / "folder"
    link.symlink_to(store / "store.db")
    folder.symlink_to(store)

    for file in (store / "store.db", store / "new", link, folder / "lock", store.parent / "new"):
        refused = invoked("export", kept, 2, "-o", file)

        assert (refused.exit_code, refused.stdout) == (2, "")
        where = store.parent
        said = f"-o {file}: it is where the store is, in '{where}': expected a file outside of it"
        assert refused.stderr.endswith(f"\nError: {said}\n")
    assert files(kept) == before
    assert [each.name for each in store.parent.iterdir()] == [store.name]


def test_an_earlier_export_stays_until_another_is_whole(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    file = folder / "earlier.jsonl"
    file.write_text("earlier")

    def breaks_off(*_: object) -> Iterator[bytes]:
        yield b"first"
        assert file.read_text() == "earlier"
        raise sqlite3.DatabaseError("no such page")

    missing = invoked("export", kept, 77, "-o", file)
    held = Inspection(kept.joinpath(*FOLDER))
    in_use = invoked("export", kept, 2, "-o", file)
    held.close()
    with monkeypatch.context() as patched:
        patched.setattr(stoppedstore, "records_of", breaks_off)
        failed = invoked("export", kept, 2, "-o", file)

    assert [missing.exit_code, in_use.exit_code, failed.exit_code] == [5, 1, 1]
    assert "there is no part 77 in the store" in missing.stderr
    assert "no such page: see headrace store check" in failed.stderr
    assert [(each, each.read_text()) for each in folder.iterdir()] == [(file, "earlier")]

    assert invoked("export", kept, 2, "-o", file).exit_code == 0
    assert len(file.read_text().splitlines()) == 300


@pytest.mark.parametrize("command", ["show", "check", "export", "discard"])
def test_a_store_that_is_not_there_or_in_use_or_newer_is_refused_in_words(
    kept: Path, tmp_path: Path, command: str
) -> None:
    more = [1] if command in ("export", "discard") else []
    store = tmp_path.joinpath(*FOLDER)

    (tmp_path / "empty").mkdir()
    nothing = invoked(command, tmp_path / "empty", *more)
    held = Inspection(store)
    in_use = invoked(command, kept, *more)
    held.close()
    damage(kept, "PRAGMA user_version = 2")
    newer = invoked(command, kept, *more)

    assert (nothing.exit_code, nothing.stderr) == (
        5,
        f"there is no store in '{tmp_path / 'empty' / 'store' / '0'}': expected the --data-dir of"
        " a server that has kept something\n",
    )
    assert [*(tmp_path / "empty").iterdir()] == []
    assert (in_use.exit_code, in_use.stderr) == (
        1,
        f"the store '{store}' is in use by another process: stop the server that has it, or ask"
        " that one for /api/stored and dead letters\n",
    )
    assert (newer.exit_code, newer.stderr) == (
        1,
        "the store is of version 2, and this headrace knows versions up to 1\n",
    )


@pytest.mark.parametrize(
    "args", [("export", "d"), ("export", "d", "1", "--dead-letters"), ("export", "d", "x")]
)
def test_an_export_says_what_it_is_of(args: tuple[str, ...]) -> None:
    assert invoked(*args).exit_code == 2


def test_nothing_is_left_beside_a_store_that_was_closed(tmp_path: Path) -> None:
    run_virtual(lambda: keep(tmp_path, is_killed=False))
    before = files(tmp_path)

    assert invoked("check", tmp_path).exit_code == 0
    assert files(tmp_path) == before
    assert {*before} == {"lock", "store.db"}


def test_what_is_no_database_is_damage(kept: Path) -> None:
    store = kept.joinpath(*FOLDER)
    (store / "store.db-wal").unlink()
    (store / "store.db").write_bytes(b"nothing" * 1000)

    assert invoked("check", kept).stdout == ("the file: cannot be opened: file is not a database\n")
    told = invoked("show", kept)
    assert told.exit_code == 1
    assert "see headrace store check" in told.stderr


def test_names_that_are_no_utf_8_any_more_are_damage(kept: Path) -> None:
    damage(kept, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = kept.joinpath(*FOLDER, "store.db")
    content = bytearray(file.read_bytes())
    content[content.index(b"tableentriesentries") + len("table")] ^= 0x80
    file.write_bytes(content)

    checked = invoked("check", kept)
    assert checked.exit_code == 1
    assert "not UTF-8: malformed database schema" in checked.stdout
    for command in (["show", kept], ["export", kept, 1], ["discard", kept, 1]):
        told = invoked(*command)
        assert told.exit_code == 1
        assert "see headrace store check" in told.stderr


@pytest.mark.long
def test_the_command_itself_does_it(kept: Path) -> None:
    ended = run(kept, "store", "show", str(kept))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "postgres db/t" in ended.stdout
