"""What a store has of one pipeline while nobody has it open."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from headrace.compiler.runtime.storedarrival import payload_of
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.storeformat import unpacked

ROWS = "SELECT count, body FROM entries JOIN queues ON queue = id WHERE pipeline = ? ORDER BY n"


def stored_messages(data: Path, pipeline: str) -> list[Any]:
    """Return the messages that are in the store below a data directory, in order."""
    [file] = (data / "store").rglob(DATABASE)
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute(ROWS, (pipeline,)).fetchall()
    entries = [entry for count, body in rows for entry in unpacked(count, body)]
    values = [json.loads(payload_of(entry)[0]) for entry in entries]
    return [message for each in values for message in (each if isinstance(each, list) else [each])]
