"""The folder of a store: who may have it, what is refused, what is made of files that are removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeerrors import StoreRefused
from headrace.compiler.store.storeformat import FORMAT
from headrace.compiler.store.writer import LOOK_SECONDS
from tests.compiler.store.killed import kill
from tests.rooms import REPOSITORY
from tests.virtual import virtual

OTHER = """
import asyncio, sys
from pathlib import Path
from headrace.compiler.clock import Clock
from headrace.compiler.store.storeerrors import StoreRefused
from headrace.compiler.store.openstore import Store

async def main():
    try:
        await Store.open(Clock(asyncio.get_running_loop()), Path(sys.argv[1]), keep_free_bytes=0)
        print("opened")
    except StoreRefused as cause:
        print(cause)

asyncio.run(main())
"""


async def opened(path: Path, told: list[str]) -> tuple[Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, path, keep_free_bytes=0, reserve_bytes=4096, tell=told.append)
    return store, await Journal.open(store, "p", "http", "journal", 2**40)


async def sleep(seconds: float) -> None:
    await Clock(asyncio.get_running_loop()).sleep(seconds)


async def read(journal: Journal) -> list[bytes]:
    """Return all that is there."""
    journal.stop()
    found: list[bytes] = []
    while page := await journal.read():
        found += [each.payload for each in page]
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def other_process(folder: Path) -> str:
    """Return what another process says that opens the store."""
    command = [sys.executable, "-c", OTHER, str(folder)]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.strip()


@virtual
async def test_only_one_process_has_a_folder(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path, [])
    await journal.append(b"a").stored()
    before = contents(tmp_path)

    said = other_process(tmp_path)
    assert said == f"the store '{tmp_path}' is in use by another process"
    assert contents(tmp_path) == before
    with pytest.raises(StoreRefused, match="in use by another process"):
        await opened(tmp_path, [])
    await store.close()
    assert other_process(tmp_path) == "opened"


@virtual
async def test_files_are_for_nobody_else_to_read(tmp_path: Path) -> None:
    path = tmp_path / "store" / "0"
    store, journal = await opened(path, [])
    await journal.append(b"a").stored()

    assert path.parent.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o700
    modes = {each.name: each.stat().st_mode & 0o077 for each in path.iterdir()}
    assert modes == {"store.db": 0, "store.db-wal": 0, "lock": 0, "reserve": 0}
    await store.close()


@pytest.mark.parametrize("name", ["lock", "reserve"])
@pytest.mark.parametrize("content", [b"", bytes(10_000), None], ids=["empty", "large", "absent"])
@virtual
async def test_no_link_is_followed_out_of_the_folder(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    folder, outside = tmp_path / "store", tmp_path / "outside"
    folder.mkdir()
    if content is not None:
        outside.write_bytes(content)
    (folder / name).symlink_to(outside)

    with pytest.raises(StoreRefused, match=f"'{name}' in it is a symbolic link$"):
        await opened(folder, [])
    assert (outside.read_bytes() if outside.exists() else None) == content
    (folder / name).unlink()
    store, _ = await opened(folder, [])
    await store.close()


@virtual
async def test_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    store, _ = await opened(tmp_path, [])
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = contents(tmp_path)

    said = f"the store is of version {FORMAT + 1}, and this headrace knows versions up to {FORMAT}"
    with pytest.raises(StoreRefused, match=said):
        await opened(tmp_path, [])
    assert contents(tmp_path) == before


@virtual
async def test_an_sqlite_that_is_too_old_is_refused_and_the_store_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = await opened(tmp_path, [])
    await store.close()
    before = contents(tmp_path)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))

    with pytest.raises(StoreRefused, match=r"SQLite is .*: expected 3\.38\.0 or newer"):
        await opened(tmp_path, [])
    assert contents(tmp_path) == before


@virtual
async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreRefused, match=r"file/store' cannot be written: not a directory"):
        await opened(tmp_path / "file" / "store", [])


@pytest.fixture
def readonly(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() == 0:  # whom no mode keeps from writing
        yield Path("/proc/store")
    else:
        tmp_path.chmod(0o500)
        yield tmp_path / "store"
        tmp_path.chmod(0o700)


@virtual
async def test_a_folder_that_is_not_writable_is_refused(readonly: Path) -> None:
    with pytest.raises(StoreRefused, match=rf"the store '{readonly}' cannot be written: "):
        await opened(readonly, [])


@virtual
async def test_what_is_no_database_is_kept_and_a_new_one_begun(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"something else" * 1000)
    told: list[str] = []
    store, journal = await opened(tmp_path, told)
    await journal.append(b"a").stored()
    assert store.condition.damaged == 1
    await store.close()

    [text] = told
    assert "is damaged (file is not a database): it is kept as" in text
    assert (tmp_path / "store.db.damaged-1").read_bytes() == b"something else" * 1000
    store, journal = await opened(tmp_path, told)
    assert await read(journal) == [b"a"]
    await store.close()


@virtual
async def test_a_database_that_somebody_else_has_open_is_refused(tmp_path: Path) -> None:
    store, _ = await opened(tmp_path, [])
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreRefused, match="cannot be opened: database is locked"):
            await opened(tmp_path, [])
    store, _ = await opened(tmp_path, [])
    await store.close()


@pytest.mark.parametrize(
    "removed",
    [["store.db"], ["store.db-wal"], ["store.db", "store.db-wal"], ["lock", "store.db"], None],
    ids=["database", "log", "both", "lock and database", "folder"],
)
@virtual
async def test_files_that_are_removed_are_made_again(
    tmp_path: Path, removed: list[str] | None
) -> None:
    folder, told = tmp_path / "store", list[str]()
    store, journal = await opened(folder, told)
    for which in range(3_000):
        group = journal.append(b"%d" % which)
    await group.stored()
    assert len(await journal.read(10)) == 10

    if removed is None:
        shutil.rmtree(folder)
    for name in removed or ():
        (folder / name).unlink()
    await sleep(LOOK_SECONDS + 0.1)
    assert told == [f"the store takes nothing: '{folder / 'store.db'}' was removed"]
    await sleep(2)
    assert told[1:] == ["the store takes entries again"]
    await journal.append(b"3000").stored()
    assert other_process(folder) == f"the store '{folder}' is in use by another process"
    journal.let_go(range(5))
    kill(store)

    store, again = await opened(folder, told)
    found = await read(again)
    assert found in ([b"%d" % which for which in range(first, 3_001)] for first in (0, 5))
    assert len(told) == 2
    await store.close()


@virtual
async def test_the_log_of_a_removed_database_is_not_taken_for_that_of_its_copy(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    store, journal = await opened(tmp_path, told)
    for which in range(3_000):
        group = journal.append(b"%d" % which + bytes(1_000))
    await group.stored()
    journal.let_go([each.number for each in await journal.read()])
    await store.close()
    store, journal = await opened(tmp_path, told)
    await journal.append(b"3000").stored()  # the log has some pages alone

    (tmp_path / "store.db").unlink()
    await sleep(LOOK_SECONDS + 2)
    assert (len(told), store.condition.state) == (2, "open")
    expected = journal.entries
    await store.close()
    store, journal = await opened(tmp_path, told)
    assert journal.entries == expected
    assert len(await read(journal)) == expected > 1_000
    assert len(told) == 2
    await store.close()


@virtual
async def test_what_is_gone_with_a_file_is_told_and_numbers_go_on(tmp_path: Path) -> None:
    told: list[str] = []
    store, journal = await opened(tmp_path, told)
    for which in range(3_000):
        group = journal.append(b"%d" % which)
    await group.stored()
    kept = len(await journal.read())

    # The one that is open has them no more either.
    store.database._run.execute("DELETE FROM entries")
    (tmp_path / "store.db").unlink()
    (tmp_path / "store.db-wal").unlink()
    await sleep(LOOK_SECONDS + 2)
    await journal.append(b"next").stored()
    [entry] = await journal.read()
    assert (entry.number, entry.payload) == (3_000, b"next")
    assert told[2:] == [f"{3_000 - kept:,} entries of queue 1 are gone"]
    assert journal.entries == kept + 1
    await store.close()


@virtual
async def test_what_is_never_mapped_is_not_there(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path, [])
    await journal.append(b"a").stored()
    kill(store)
    store, journal = await opened(tmp_path, [])

    # A mapped file that is cut short ends the process.
    assert not (tmp_path / "store.db-shm").exists()
    await store.close()
