"""What `headrace dead-letters` asks a server, and what it prints of the answers.

Nothing large is held: what is exported is written as it comes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

import msgspec

from headrace.compiler.clock import pause
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.timestamps import rfc3339_of_seconds
from headrace.web.commands.askingserver import (
    DEFAULT_URL,
    NoSuchLetter,
    ServerRefuses,
    ask,
    refusal,
)
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.printing import print_json, print_text

ASKED_SECONDS = 0.5
"""How long it is until a replay is asked again how far it has come."""
HIGHEST = 2**63 - 1
"""What a page ends before at most: above the ids of all letters."""
COPIED = 64 * 1024
"""Bytes that are read at once of a letter."""


@dataclass(frozen=True, slots=True)
class LetterServer:
    """A server with dead letters."""

    url: str = DEFAULT_URL
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def answered(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> HTTPResponse:
        """Return an answer of success.

        Raises:
            ServerRefuses: there is none.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        asked = f"{path}?{urlencode(given, quote_via=quote)}" if given else path
        sent = None if body is None else msgspec.json.encode(body)
        response = ask(self.url, self.environment, method, asked, sent)
        if response.status >= 300:
            raise ServerRefuses(refusal(response, self.url, "dead letters"), response.status)
        return response

    def value(self, method: str, path: str, *given: Any, **options: Any) -> Any:
        """Return what an answer holds.

        Raises:
            ServerRefuses: there is none.
        """
        try:
            return json.loads(self.answered(method, path, *given, **options).read())
        except (OSError, HTTPException, ValueError, RecursionError):
            raise ServerRefuses(f"what answers at {self.url} is no headrace server") from None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which letters of a pipeline are meant."""

    pipeline: str
    ids: Sequence[int] = ()
    stage: str | None = None
    message: str | None = None

    @property
    def path(self) -> str:
        """Where they are."""
        return f"/api/pipelines/{quote(self.pipeline, safe='')}/dead-letters"

    @property
    def filter(self) -> dict[str, str]:
        """What they have in common."""
        told = {"stage": self.stage, "message": self.message}
        return {name: value for name, value in told.items() if value is not None}


def list_alike(server: LetterServer, *, is_json: bool) -> int:
    """Print what failed alike, in all pipelines."""
    rows = server.value("GET", "/api/dead-letters")
    if is_json:
        print_json(rows)
    elif rows:
        head = ("PIPELINE", "WHERE", "LETTERS", "MESSAGES", "CLASS", "LAST SEEN", "MESSAGE")
        print_text(*_table(head, [_alike(each) for each in rows]))
    else:
        print_text("no dead letters")
    return FINE


def list_of(server: LetterServer, chosen: Chosen, most: int, *, is_json: bool) -> int:
    """Print letters of a pipeline, the newest first."""
    found, total = [], 0
    for page in _pages(server, chosen, min(most, 200)):
        found += page["entries"]
        total = page["total"]
        _tell_damaged(page)
        if len(found) >= most:
            break
    found = found[:most]
    if is_json:
        print_json(found)
    elif found:
        head = ("ID", "WHERE", "MESSAGES", "TRIES", "CLASS", "LAST SEEN", "MESSAGE")
        print_text(*_table(head, [_entry(each) for each in found]))
    else:
        print_text("no dead letters")
    if total > len(found):
        print(f"{total - len(found):,} more are not listed: see --limit", file=sys.stderr)
    return FINE


def show(server: LetterServer, pipeline: str, id: int, out: BinaryIO) -> int:
    """Write one letter with what is in it, as JSON."""
    with telling_missing(server, pipeline, id):
        response = server.answered("GET", f"{Chosen(pipeline).path}/{id}")
    _copy(response, server, out)
    return FINE


def export(server: LetterServer, chosen: Chosen, out: BinaryIO) -> int:
    """Write letters with what is in them, the newest first, one a line."""
    written = 0
    for page in _pages(server, chosen):
        _tell_damaged(page)
        for each in page["entries"]:
            _copy(server.answered("GET", f"{chosen.path}/{each['id']}"), server, out)
            written += 1
    print(f"{_counted(written)} written", file=sys.stderr)
    return FINE if written else NOTHING


def delete(server: LetterServer, chosen: Chosen) -> int:
    """Delete letters."""
    query: dict[str, Any] = dict(chosen.filter) or {"all": "true"}
    if chosen.ids:
        query = {"ids": ",".join(map(str, chosen.ids))}
    deleted = server.value("DELETE", chosen.path, query)["deleted"]
    print_text(f"{_counted(deleted)} deleted")
    return FINE if deleted else NOTHING


def replay(server: LetterServer, chosen: Chosen, options: Mapping[str, Any]) -> int:
    """Replay letters, and wait until that is over; ``options`` as in the body of the request."""
    meant = {"ids": [*chosen.ids]} if chosen.ids else {"filter": chosen.filter}
    path = f"{chosen.path}/replay"
    edited = chosen.ids[:1] if "messages" in options else ()
    with telling_missing(server, options.get("from", chosen.pipeline), *edited):
        begun = server.value("POST", path, body={**meant, **options})
    tell_changed(begun)
    while True:
        figures = server.value("GET", path)
        if figures is None or figures["replay"] != begun["replay"]:
            now = "the server has begun anew" if figures is None else "another replay has begun"
            raise ServerRefuses(f"{now}: what became of this one is not known")
        if figures["state"] != "running":
            break
        pause(ASKED_SECONDS)
    done, failed, state = figures["done"], figures["failed"], figures["state"]
    print_text(
        f"{state}: {done:,} of {figures['selected']:,} gone through, {failed:,} failed again"
    )
    if not figures["selected"]:
        return NOTHING
    return FINE if state == "done" and not failed else REFUSED


def replay_options(
    rate: float | None,
    source: str | None,
    component: int | None,
    input_index: int | None,
    messages: Path | None,
) -> dict[str, Any]:
    """Return what is asked of a replay besides which letters; digits in ``messages`` stay.

    Raises:
        ServerRefuses: that file cannot be read, or has no JSON.
    """
    told: dict[str, Any] = {
        "rate": rate,
        "from": source,
        "component": component,
        "input_index": input_index,
    }
    options = {name: value for name, value in told.items() if value is not None}
    if messages is not None:
        try:
            text = messages.read_bytes()
        except OSError as cause:
            raise ServerRefuses(f"{messages} cannot be read: {cause.strerror}") from None
        try:
            msgspec.json.decode(text)
        except ValueError as cause:
            raise ServerRefuses(f"{messages} is not JSON: {cause}") from None
        options["messages"] = msgspec.Raw(text)
    return options


def _pages(server: LetterServer, chosen: Chosen, limit: int = 200) -> Iterator[Any]:
    """Yield the pages of what is meant."""
    before = None
    while True:
        query = {**chosen.filter, "before": before, "limit": limit}
        page = server.value("GET", chosen.path, query)
        yield page
        if (before := page["next"]) is None:
            return


@contextmanager
def telling_missing(server: LetterServer, pipeline: str, *ids: int) -> Iterator[None]:
    """Have it told apart from a refusal that a letter which is asked for is not there.

    Raises:
        NoSuchLetter: the server has not found what it is asked, and lists no such letter.
        ServerRefuses: it refuses for another reason.
    """
    try:
        yield
    except ServerRefuses as cause:
        if cause.status == 404 and any(not _is_listed(server, pipeline, id) for id in ids):
            raise NoSuchLetter(str(cause)) from None
        raise


def _is_listed(server: LetterServer, pipeline: str, id: int) -> bool:
    """Return whether a pipeline has a letter with that id, which may be damaged."""
    query = {"before": min(id + 1, HIGHEST), "limit": 1}
    page = server.value("GET", Chosen(pipeline).path, query)
    return id in [*page["damaged"], *(each["id"] for each in page["entries"])]


def tell_changed(answer: Any) -> None:
    """Tell what of the config is another one than when letters failed."""
    if answer["config_changed"]:
        settings = ", ".join(answer["changed"])
        where = f": {settings}" if settings else ""
        said = f"the pipeline has another config than when they failed{where}"
        print(printable(said), file=sys.stderr)


def _tell_damaged(page: Any) -> None:
    if damaged := page["damaged"]:
        print(f"damaged on the disk: {', '.join(map(str, damaged))}", file=sys.stderr)


def _copy(response: HTTPResponse, server: LetterServer, out: BinaryIO) -> None:
    while part := _read(response, server):
        out.write(part)
    out.write(b"\n")
    out.flush()


def _read(response: HTTPResponse, server: LetterServer) -> bytes:
    """Return what comes next of an answer; nothing: that was all."""
    with suppress(OSError, HTTPException):
        part = response.read(COPIED)
        if part or not response.length:  # what is missing at the end is no failure to it
            return part
    raise ServerRefuses(f"{server.url} broke off in the middle of a dead letter")


def _counted(letters: int) -> str:
    return f"{letters:,} dead letter{'' if letters == 1 else 's'}"


def _alike(row: Any) -> tuple[str, ...]:
    figures = f"{row['count']:,}", f"{row['message_count']:,}", row["class"]
    return row["pipeline_id"], _where(row), *figures, _moment(row), row["message"]


def _entry(row: Any) -> tuple[str, ...]:
    figures = f"{row['message_count']:,}", str(row["tries"]), row["class"]
    return str(row["id"]), _where(row), *figures, _moment(row), row["message"]


def _moment(row: Any) -> str:
    return rfc3339_of_seconds(row["last_seen"] // 1000)


def _where(row: Any) -> str:
    at = row["component"] if row["component"] is not None else row.get("input_index")
    return row["stage"] if at is None else f"{row['stage']} {at}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. The last column may be long, and is not filled."""
    lines = [head, *([printable(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    for *cells, last in lines:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join([*padded, last])
