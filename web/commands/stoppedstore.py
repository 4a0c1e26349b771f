"""What `headrace store` does with the store of a stopped server, and what it prints."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.storage import FOLDER
from headrace.compiler.runtime.storedexport import DamagedRecord, letters_of, records_of
from headrace.compiler.store import storesubjects
from headrace.compiler.store.inspection import Inspection, NoStore
from headrace.compiler.store.lostcommits import said_of
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import BUCKET, StoredQueue
from headrace.compiler.store.storeerrors import StoreFailed, StoreRefused
from headrace.compiler.store.storeformat import FORMAT
from headrace.compiler.store.storesubjects import Damage
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.timestamps import rfc3339_of_seconds
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.ownfile import own_file
from headrace.web.commands.printing import print_json, print_text

MOMENTS = ("oldest", "ended", "found", "first_seen", "last_seen")
"""Names of what is told in milliseconds since 1970."""
NAMES = ("id", "component")
"""Names of numbers that are no amounts."""
TITLES = {
    "parts": "journals, queues, and parts of outputs",
    "aside": "set aside",
    "dead_letters": "dead letters",
    "others": "tables that this headrace does not know",
}
"""How what is told by a name is called, where it is not called so."""


class StoreCommandFails(HeadraceError):
    """A store cannot be looked at, or has not what is meant."""

    def __init__(self, text: str, exit_code: int = REFUSED) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def show(directory: Path, *, is_json: bool) -> int:
    """Print how much is kept."""
    with _inspected(directory) as store:
        told, about = storesubjects.tell(store.database), _about(store)
        if is_json:
            print_json({**about, **told})
            return FINE
        print_text(*_headline(about))
        for name, rows in told.items():
            if rows:
                print_text("", TITLES.get(name, name), *_table(rows))
        if not any(told.values()):
            print_text("nothing is kept")
        return FINE


def check(directory: Path, *, is_json: bool) -> int:
    """Print what is damaged."""
    found: list[Damage] = []
    try:
        with _inspected(directory, is_damage_told=False) as store:
            if store.lost_commits:
                found.append(Damage("the log", said_of(store.lost_commits)))
            found += store.read(lambda run: [*storesubjects.damages(run)])
    except sqlite3.Error as cause:
        found.append(Damage("the file", f"cannot be opened: {cause}"))
    if is_json:
        print_json([asdict(each) for each in found])
    elif found:
        print_text(*(printable(f"{each.place}: {each.found}") for each in found))
    else:
        print_text("nothing is damaged")
    return REFUSED if found else FINE


def export(directory: Path, part: int | None, pipeline: str | None, file: Path | None) -> int:
    """Write what is in a part, by its id; None: in the dead letters of a pipeline, or of all.

    ``file``: where to; None: to standard output.
    """
    written = damaged = 0
    with _inspected(directory) as store:
        records = (
            letters_of(store, pipeline) if part is None else records_of(store, _part(store, part))
        )
        if file is not None:
            _refuse_inside(directory, file)
        with nullcontext(sys.stdout.buffer) if file is None else own_file(file) as out:
            for record in records:
                if isinstance(record, DamagedRecord):
                    print(printable(record.text), file=sys.stderr)
                    damaged += 1
                else:
                    out.write(record + b"\n")
                    written += 1
            out.flush()
    what = "dead letters" if part is None else "entries"
    print(f"{written:,} {what} written", file=sys.stderr)
    if damaged:
        return REFUSED
    return FINE if written else NOTHING


def _refuse_inside(directory: Path, file: Path) -> None:
    """Refuse to write a file where the store of a directory is."""
    meant = Path(os.path.realpath(file))
    for count in range(1, len(FOLDER) + 1):
        store = directory.joinpath(*FOLDER[:count])
        if meant.is_relative_to(os.path.realpath(store)):
            found = f"it is where the store is, in '{store}'"
            raise click.UsageError(printable(f"-o {file}: {found}: expected a file outside of it"))


def discard(directory: Path, part: int) -> int:
    """Give up a part."""
    with _inspected(directory) as store:
        gone = _part(store, part)
        aside = [row for row in storesubjects.tell(store.database)["aside"] if row["id"] == part]
        keys = storesubjects.bucket_fill(store.database, part)
    asyncio.run(_discard(directory, part))
    if gone.kind == BUCKET:
        bucket = f"bucket {part} '{gone.target}': {keys.keys:,} keys, {keys.bytes:,} bytes"
        print_text(printable(f"discarded {bucket}"))
        return FINE
    entries = f"{gone.entries:,} entries, {gone.bytes:,} bytes"
    more = "".join(
        f", and {each['entries']:,} that were set aside ({each['why']})" for each in aside
    )
    whose = f"of pipeline '{gone.pipeline}' ({gone.target})"
    print_text(printable(f"discarded {gone.kind} {part} {whose}: {entries}{more}"))
    return FINE


async def _discard(directory: Path, part: int) -> None:
    told: list[str] = []
    folder = directory.joinpath(*FOLDER)
    try:
        store = await Store.open(Clock(asyncio.get_running_loop()), folder, tell=told.append)
        try:
            await store.queues.discard(part)
        finally:
            await store.close()
    except StoreRefused as cause:
        raise StoreCommandFails(_refusal(cause)) from cause
    except StoreFailed as cause:
        raise StoreCommandFails(f"part {part} cannot be given up: {cause}") from cause
    finally:
        for each in told:
            print(printable(each), file=sys.stderr)


@contextmanager
def _inspected(directory: Path, *, is_damage_told: bool = True) -> Iterator[Inspection]:
    """Give the store of a directory of all files.

    Raises:
        StoreCommandFails: it cannot be looked at.
        sqlite3.Error: it is damaged, unless ``is_damage_told``.
    """
    try:
        store = Inspection(directory.joinpath(*FOLDER))
        try:
            yield store
        finally:
            store.close()
    except NoStore as cause:
        said = f"{cause}: expected the --data-dir of a server that has kept something"
        raise StoreCommandFails(said, NOTHING) from cause
    except StoreRefused as cause:
        raise StoreCommandFails(_refusal(cause)) from cause
    except sqlite3.Error as cause:
        if not is_damage_told:
            raise
        said = f"the store in '{directory}' cannot be read: {cause}: see headrace store check"
        raise StoreCommandFails(said) from cause


def _refusal(cause: StoreRefused) -> str:
    if "in use" in str(cause):
        return f"{cause}: stop the server that has it, or ask that one for /api/stored and dead letters"
    return str(cause)


def _part(store: Inspection, id: int) -> StoredQueue:
    queues = store.database.queues()
    for each in queues:
        if each.id == id:
            return each
    known = ", ".join(str(each.id) for each in queues) or "none"
    raise StoreCommandFails(f"there is no part {id} in the store: expected one of {known}", NOTHING)


def _about(store: Inspection) -> dict[str, Any]:
    rows = store.read(lambda run: run.execute("SELECT clean, alive, id FROM store").fetchall())
    clean, alive, id = rows[0] if rows else (0, None, None)
    return {
        "file": str(store.file),
        "bytes": store.file.stat().st_size,
        "format": FORMAT,
        "store_id": id,
        "alive": storesubjects.millis(alive),
        "is_closed": clean == 1,
        "lost_commits": store.lost_commits,
        "damaged_files": [
            {"file": str(each), "bytes": each.stat().st_size} for each in store.set_apart()
        ],
    }


def _headline(about: dict[str, Any]) -> Iterator[str]:
    yield printable(f"{about['file']}: {about['bytes']:,} bytes, format {about['format']}")
    how = "closed in order" if about["is_closed"] else "ended without a word"
    yield f"a server had it until {_moment(about['alive'])}, and {how}"
    if about["lost_commits"]:
        yield f"its log: {said_of(about['lost_commits'])}"
    for each in about["damaged_files"]:
        yield printable(f"kept as it was damaged: {each['file']}, {each['bytes']:,} bytes")


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table, with a column for each name."""
    names = [*rows[0]]
    head = [name.removesuffix("_id").replace("_", " ").upper() for name in names]
    lines = [head, *([_cell(name, row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in MOMENTS:
        return _moment(value)
    if isinstance(value, int) and name not in NAMES:
        return f"{value:,}"
    return printable(str(value))


def _moment(millis: int | None) -> str:
    return "-" if millis is None else rfc3339_of_seconds(millis // 1000)
