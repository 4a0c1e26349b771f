"""What is done to the tables of dead letters, on the thread of the store.

Lists never read a body, and figures not even a letter: how much there is of what failed alike is counted
with each commit. What is known of a letter has a checksum, and its body another.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

from headrace.compiler.store.inpieces import (
    MOST_JOINED,
    ROWS_AT_ONCE,
    read_in_pieces,
    write_in_pieces,
)
from headrace.compiler.store.letterrows import (
    DroppedLetters,
    FoundLetter,
    Letter,
    LetterAmount,
    LetterAmounts,
    LetterPage,
    LetterRest,
    LetterSignature,
    LetterSome,
    LetterTry,
    NewLetter,
    WholeLetter,
    add,
)

DELETED_LETTERS = 1_000
DELETED_BYTES = 16 * 2**20
"""Of what is deleted in one transaction: commits wait for it."""

_COLUMNS = (
    "id, pipeline, stage, component, input_index, target, class, message, detail, first_seen, last_seen,"
    " tries, maybe_written, received_at, config, messages, bytes, size, signature"
)
_COUNT = _COLUMNS.count(",") + 2
_VALUES = f"({', '.join('?' * _COUNT)})"
_ID = Struct("<Q")
_GIVEN = "(SELECT value FROM json_each(?))"
_FIGURES = "count(*), CAST(total(messages) AS INTEGER), CAST(total(size) AS INTEGER)"
_OF_GIVEN = (
    f"SELECT pipeline, stage, signature, {_FIGURES} FROM letters WHERE id IN {_GIVEN}"
    " GROUP BY 1, 2, 3"
)
_AMOUNTS = (
    "SELECT pipeline, stage, CAST(total(letters) AS INTEGER), CAST(total(messages) AS INTEGER),"
    " CAST(total(size) AS INTEGER) FROM signatures GROUP BY 1, 2"
)
_OLDEST = (
    "SELECT id, stage, component, messages, size FROM letters INDEXED BY letters_of_pipeline"
    " WHERE pipeline = ? ORDER BY id"
)
_LISTED = "SELECT count(*), min(id) FROM letters INDEXED BY letters_of_pipeline WHERE pipeline = ?"
_COUNT_ALIKE = (
    " ON CONFLICT (id) DO UPDATE SET letters = letters + excluded.letters,"
    " messages = messages + excluded.messages, size = size + excluded.size,"
    " first_seen = min(first_seen, excluded.first_seen), last_seen = max(last_seen, excluded.last_seen)"
)
_COUNT_LESS = (
    "UPDATE signatures SET letters = letters - json_extract(gone.value, '$[1]'),"
    " messages = messages - json_extract(gone.value, '$[2]'),"
    " size = size - json_extract(gone.value, '$[3]')"
    " FROM json_each(?) AS gone WHERE signatures.id = json_extract(gone.value, '$[0]')"
)
_FORGET = (
    f"DELETE FROM signatures WHERE id IN {_GIVEN}"
    " AND NOT EXISTS (SELECT 1 FROM letters WHERE signature = signatures.id)"
)
_RECOUNT = (
    f"INSERT INTO signatures SELECT signature, pipeline, stage, component, message, class, {_FIGURES},"
    " min(first_seen), max(last_seen) FROM letters GROUP BY signature"
)
_SIGNATURES = "SELECT * FROM signatures WHERE pipeline = ? ORDER BY last_seen DESC LIMIT ?"
_MEANT = (
    "FROM signatures WHERE pipeline = ?1"
    " AND (?2 IS NULL OR stage = ?2) AND (?3 IS NULL OR message = ?3)"
)
_SUM = f"SELECT CAST(total(letters) AS INTEGER), CAST(total(size) AS INTEGER) {_MEANT}"
_SOME = (  # the plus keeps SQLite from looking through all of the pipeline
    f"SELECT {_COLUMNS}, crc FROM letters WHERE id IN {_GIVEN} AND +pipeline = ? ORDER BY id"
)
_ALIKE = f"SELECT {_COLUMNS}, crc FROM letters WHERE signature = ? ORDER BY id"
_SEEN = "UPDATE signatures SET last_seen = max(last_seen, ?) WHERE id = ?"
_TRIED = "UPDATE letters SET last_seen = ?, tries = ?, maybe_written = ?, crc = ? WHERE id = ?"
_LEFT = "UPDATE letters SET messages = ?, bytes = ?, size = ?, crc = ? WHERE id = ?"


class LetterFilter(NamedTuple):
    """Which letters of a pipeline are meant."""

    pipeline: str
    stage: str | None = None
    message: str | None = None


def are_there(run: sqlite3.Connection) -> bool:
    """Return whether there are tables of letters."""
    named = "SELECT 1 FROM sqlite_master WHERE name = 'letters'"
    return run.execute(named).fetchone() is not None


def next_id(run: sqlite3.Connection) -> int:
    """Return a number above those of all letters there were."""
    seen = run.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'letters' UNION ALL SELECT max(id) FROM letters"
    )
    return max((each for [each] in seen if isinstance(each, int)), default=0) + 1


def amounts(run: sqlite3.Connection) -> LetterAmounts:
    """Return how much there is of all pipelines and stages."""
    return {(pipeline, stage): LetterAmount(*of) for pipeline, stage, *of in run.execute(_AMOUNTS)}


def recount(run: sqlite3.Connection) -> None:
    """Make the figures anew of what letters there are."""
    run.execute("DELETE FROM signatures")
    run.execute(_RECOUNT)


def insert(run: sqlite3.Connection, letters: Sequence[NewLetter]) -> None:
    """Insert letters."""
    for start in range(0, len(letters), ROWS_AT_ONCE):
        some = letters[start : start + ROWS_AT_ONCE]
        values = [value for each in some for value in _row(each)]
        run.execute(f"INSERT INTO letters VALUES {', '.join([_VALUES] * len(some))}", values)
        small = [each for each in some if len(each.body) <= MOST_JOINED]
        if small:
            bodies = [
                v for each in small for v in (each.id, _checksum(each.id, each.body), each.body)
            ]
            run.execute(
                f"INSERT INTO bodies VALUES {', '.join(['(?, ?, ?)'] * len(small))}", bodies
            )
        for each in some:
            if len(each.body) > MOST_JOINED:
                _insert_in_pieces(run, each.id, each.body)
    _count(run, letters)


def _insert_in_pieces(run: sqlite3.Connection, id: int, body: bytes) -> None:
    """Insert a body in pieces."""
    key = (id, _checksum(id, body), len(body))
    run.execute("INSERT INTO bodies VALUES (?, ?, zeroblob(?))", key)
    write_in_pieces(run, "bodies", id, body)


def _count(run: sqlite3.Connection, letters: Sequence[NewLetter]) -> None:
    """Count letters with those that failed alike."""
    alike: dict[int, tuple[NewLetter, LetterAmount, float, float]] = {}
    for each in letters:
        amount, first, last = (
            each.amount,
            float(each.letter.first_seen),
            float(each.letter.last_seen),
        )
        if (known := alike.get(each.signature)) is not None:
            amount = amount.plus(known[1])
            first, last = min(first, known[2]), max(last, known[3])
        alike[each.signature] = each, amount, first, last
    rows = [(id, *_known(one.letter), *of) for id, (one, *of) in alike.items()]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = [(*row[:6], *row[6], *row[7:]) for row in rows[start : start + ROWS_AT_ONCE]]
        values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
        run.execute(f"INSERT INTO signatures VALUES {values}{_COUNT_ALIKE}", [*chain(*some)])


def drop(
    run: sqlite3.Connection, letters: Sequence[NewLetter], deleted: LetterAmounts
) -> list[DroppedLetters]:
    """Delete the oldest of pipelines, as much as new ones want; add it to what is deleted."""
    wanted = Counter[str]()
    for each in letters:
        wanted[each.letter.pipeline] += each.frees
    ids: list[int] = []
    dropped: dict[tuple[str, str, int | None], tuple[int, int]] = {}
    for pipeline, size in wanted.items():
        for id, stage, component, messages, frees in _oldest(run, pipeline, size):
            ids.append(id)
            count, before = dropped.get((pipeline, stage, component), (0, 0))
            dropped[pipeline, stage, component] = count + 1, before + _number(messages)
            size -= _number(frees)
    if ids:
        delete(run, ids, deleted)
    return [DroppedLetters(*place, *count) for place, count in dropped.items()]


def update(run: sqlite3.Connection, tried: dict[int, LetterTry]) -> None:
    """Write what became of letters; what is damaged stays as it is, and what is gone is gone."""
    for row in run.execute(
        f"SELECT {_COLUMNS}, crc FROM letters WHERE id IN {_GIVEN}", (json.dumps([*tried]),)
    ).fetchall():
        if (found := _found(row)) is not None:
            now, columns = tried[found.id], [*row[:-1]]
            seen = float(now.last_seen)
            columns[10:13] = seen, now.tries, int(now.maybe_written)
            run.execute(_TRIED, (*columns[10:13], _of_fields(columns), found.id))
            run.execute(_SEEN, (seen, columns[-1]))


def keep_rests(
    run: sqlite3.Connection, rests: Sequence[LetterRest], deleted: LetterAmounts
) -> None:
    """Have of letters only what is left, and add to ``deleted`` how much went.

    What is damaged stays as it is, and what is gone is gone.
    """
    for rest in rests:
        update(run, {rest.id: rest.tried})
        row = run.execute(
            f"SELECT {_COLUMNS}, crc FROM letters WHERE id = ?", (rest.id,)
        ).fetchone()
        if row is None or (found := _found(row)) is None:
            continue
        columns, frees = [*row[:-1]], found.bytes - len(rest.body)
        less = found.letter.messages - rest.messages, frees
        columns[15:18] = rest.messages, len(rest.body), columns[17] - frees
        run.execute(_LEFT, (*columns[15:18], _of_fields(columns), rest.id))
        run.execute("DELETE FROM bodies WHERE id = ?", (rest.id,))
        _insert_in_pieces(run, rest.id, rest.body)
        run.execute(_COUNT_LESS, (json.dumps([(columns[-1], 0, *less)]),))
        add(deleted, (found.letter.pipeline, found.letter.stage), LetterAmount(0, *less))


def delete(run: sqlite3.Connection, ids: Sequence[int], deleted: LetterAmounts) -> None:
    """Delete letters; add to ``deleted`` how much that was."""
    given = (json.dumps(ids),)
    less: list[tuple[int, ...]] = []
    for pipeline, stage, signature, *figures in run.execute(_OF_GIVEN, given):
        add(deleted, (pipeline, stage), LetterAmount(*figures))
        less.append((signature, *figures))
    for table in ("bodies", "letters"):
        run.execute(f"DELETE FROM {table} WHERE id IN {_GIVEN}", given)
    run.execute(_COUNT_LESS, (json.dumps(less),))
    run.execute(_FORGET, (json.dumps([signature for signature, *_ in less]),))


def delete_given(run: sqlite3.Connection, pipeline: str, ids: Sequence[int]) -> LetterAmounts:
    """Delete those of some letters that are of a pipeline; return how much that was."""
    of_it = f"SELECT id FROM letters WHERE pipeline = ? AND id IN {_GIVEN}"
    found = [id for [id] in run.execute(of_it, (pipeline, json.dumps(ids)))]
    deleted: LetterAmounts = {}
    delete(run, found, deleted)
    return deleted


def delete_some(run: sqlite3.Connection, of: LetterFilter, last: int) -> LetterAmounts:
    """Delete some of what is meant, up to a letter; return how much that was, nothing: all are gone."""
    ids, size = list[int](), 0
    for id, frees in _select(run, "id, size", of, last + 1, DELETED_LETTERS):
        ids.append(id)
        size += _number(frees)
        if size >= DELETED_BYTES:
            break
    if not ids:
        _check(run, of, last + 1)
    deleted: LetterAmounts = {}
    delete(run, ids, deleted)
    return deleted


def signatures(run: sqlite3.Connection, pipeline: str, most: int) -> list[LetterSignature]:
    """Return what failed alike in a pipeline, last seen first, and at most so many."""
    found = []
    for row in run.execute(_SIGNATURES, (pipeline, most)).fetchall():
        id, *known, letters, messages, size, first, last = row
        if _hash(known) != id:  # one that is damaged
            if (one := _one_of(run, id)) is None:
                continue
            known = [*_known(one)]
        columns = [*known, letters, messages, size, first, last]
        found.append(LetterSignature(*columns))
    return found


def page(run: sqlite3.Connection, of: LetterFilter, before: int, limit: int) -> LetterPage:
    """Return some letters that come before one, newest first."""
    total, size = run.execute(_SUM, of).fetchone()
    ids = [id for [id] in _select(run, "id", of, before, limit + 1)]
    given = json.dumps(ids[:limit])
    rows = run.execute(
        f"SELECT {_COLUMNS}, crc FROM letters WHERE id IN {_GIVEN} ORDER BY id DESC", (given,)
    ).fetchall()
    found = {row[0]: _found(row) for row in rows}
    letters = [each for each in found.values() if each is not None]
    damaged = [id for id in ids[:limit] if found.get(id) is None]
    if len(ids) <= limit:
        _check(run, of, ids[-1] if ids else before)
    last = ids[:limit][-1] if ids else before
    return LetterPage(letters, damaged, last, len(ids) > limit, total, size)


def one(run: sqlite3.Connection, id: int) -> WholeLetter | None:
    """Return a letter with its body; None: there is none."""
    row = run.execute(f"SELECT {_COLUMNS}, crc FROM letters WHERE id = ?", (id,)).fetchone()
    if row is None:
        return None
    found, body = _found(row), None
    stored = run.execute("SELECT crc FROM bodies WHERE id = ?", (id,)).fetchone()
    if stored is not None:
        try:
            content = read_in_pieces(run, "bodies", id)
        except sqlite3.OperationalError as cause:
            if cause.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            return WholeLetter(found, None)  # what is damaged may be no body any more
        body = content if _checksum(id, content) == stored[0] else None
    return WholeLetter(found, body)


def some(run: sqlite3.Connection, of: LetterFilter, ids: Sequence[int]) -> LetterSome:
    """Return those of some letters that are meant, without their bodies, oldest first.

    Nothing else is read, however many there are.
    """
    rows = run.execute(_SOME, (json.dumps(ids), of.pipeline)).fetchall()
    letters, damaged = [], []
    for row in rows:
        if (found := _found(row)) is None:
            damaged.append(row[0])
        elif of.stage in (None, found.letter.stage) and of.message in (None, found.letter.message):
            letters.append(found)
    return LetterSome(letters, damaged)


def _row(new: NewLetter) -> tuple[Any, ...]:
    letter = new.letter
    columns = (*_columns(new.id, letter), len(new.body), new.size, new.signature)
    return *columns, _of_fields(columns)


def _columns(id: int, letter: Letter) -> tuple[Any, ...]:
    """Return the columns of what a letter says."""
    times = float(letter.first_seen), float(letter.last_seen)
    received = None if letter.received_at is None else float(letter.received_at)
    tries = letter.tries, int(letter.maybe_written)
    return id, *letter[:8], *times, *tries, received, letter.config, letter.messages


def _found(row: Sequence[Any]) -> FoundLetter | None:
    """Return a letter, None: it is not what was written."""
    *columns, crc = row
    try:
        is_right = _of_fields(columns) == crc
    except TypeError:  # a column has bytes
        return None
    if not is_right:
        return None
    id, *fields = columns[:16]
    fields[11] = bool(fields[11])
    return FoundLetter(id, Letter(*fields), columns[16])


def _of_fields(columns: Sequence[Any]) -> int:
    """Return the CRC-32 of the columns of a letter."""
    return crc32(_json(columns))


def _checksum(id: int, body: bytes) -> int:
    """Return the CRC-32 of a body and whose it is."""
    return crc32(body, crc32(_ID.pack(id)))


def _known(letter: Letter) -> tuple[Any, ...]:
    """Return what tells a letter from those that failed in another way."""
    return letter.pipeline, letter.stage, letter.component, letter.message, letter.failure


def signature_of(letter: Letter) -> int:
    """Return a number of 64 bits that tells what failed alike."""
    return _hash(_known(letter))


def _hash(known: Sequence[Any]) -> int:
    digest = blake2b(_json(known), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _json(values: Sequence[Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _check(run: sqlite3.Connection, of: LetterFilter, last: int) -> None:
    """Look whether a list of all letters of a pipeline that ended at one has left none out.

    Where a page of an index is damaged, SQLite may find less without a word.

    Raises:
        sqlite3.DatabaseError: it is damaged.
    """
    if of.stage is None and of.message is None:
        listed, first = run.execute(_LISTED, (of.pipeline,)).fetchone()
        [counted, _] = run.execute(_SUM, of).fetchone()
        if listed != counted or (listed and first < last):
            cause = sqlite3.DatabaseError("letters are not listed that are there")
            cause.sqlite_errorname = "SQLITE_CORRUPT_INDEX"
            raise cause


def _number(value: object) -> int:
    """Return a number, which a damaged column need not have."""
    return value if isinstance(value, int) and value > 0 else 0


def _oldest(run: sqlite3.Connection, pipeline: str, size: int) -> Iterator[tuple[Any, ...]]:
    """Yield the oldest letters of a pipeline until they have so many bytes."""
    cursor = run.execute(_OLDEST, (pipeline,))
    try:
        while size > 0 and (row := cursor.fetchone()) is not None:
            yield row
            size -= _number(row[-1])
    finally:
        cursor.close()


def _one_of(run: sqlite3.Connection, signature: int) -> Letter | None:
    """Return a letter of a signature that is not damaged."""
    cursor = run.execute(_ALIKE, (signature,))
    try:
        return next((found.letter for row in cursor if (found := _found(row)) is not None), None)
    finally:
        cursor.close()


def _select(
    run: sqlite3.Connection, columns: str, of: LetterFilter, before: int, limit: int
) -> list[tuple[Any, ...]]:
    """Return columns of what is meant, newest first."""
    index, where, values = "letters_of_pipeline", "pipeline = ?", [of.pipeline]
    if of.stage is not None or of.message is not None:
        index, where = "letters_alike", f"signature IN {_GIVEN}"
        values = [json.dumps([id for [id] in run.execute(f"SELECT id {_MEANT}", of)])]
    query = (
        f"SELECT {columns} FROM letters INDEXED BY {index} WHERE {where} AND id < ?"
        " ORDER BY id DESC LIMIT ?"
    )
    return run.execute(query, (*values, before, limit)).fetchall()
