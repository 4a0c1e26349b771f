"""Requests: how much of a body is read, what it has to be, and whether anybody still waits for the answer.

A server tells an application that a client has left only when it is asked; a responder that works on
would not notice, and neither would the requests that wait behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import falcon
import falcon.asgi

from headrace.compiler.component.drafts import loaded
from headrace.compiler.errors import HeadraceError, Refused
from headrace.compiler.schema.records import Record
from headrace.compiler.text.composing import VALUES
from headrace.compiler.text.diagnostics import Diagnostic, in_file_order, printable
from headrace.compiler.text.documents import Document, Site, Unreadable, read
from headrace.web.asgi import Receive, unless_gone
from headrace.web.service import ThreadQueue

LARGEST = 2 * 1024 * 1024
"""Bytes of a body, but for ingest and signing in; beyond it the request is refused, read no further."""
_MOST_ID = 100

P = ParamSpec("P")
R = TypeVar("R", bound=Record)
T = TypeVar("T")


class Request(falcon.asgi.Request):
    """A request that can end what is done for it when its client leaves."""

    def __init__(
        self, scope: dict[str, Any], receive: Receive, *others: Any, **options: Any
    ) -> None:
        super().__init__(scope, receive, *others, **options)
        self._from_server = receive

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do what `asgi.unless_gone` does, for this request."""
        return await unless_gone(self._from_server, work)

    async def in_turn(
        self, turns: ThreadQueue, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what ``work`` makes of the body, in a thread, when it is its turn.

        To be called when the body has been read, as `unless_gone`.

        Raises:
            falcon.HTTPBadRequest: the client has left, and the turn is somebody else's.
            TooManyBodies: see `ThreadQueue`.
        """
        outcome = await self.unless_gone(_boxed(turns.take(work, *args, **kwargs)))
        if outcome is None:
            raise falcon.HTTPBadRequest(description="the client has left")  # answered to nobody
        return outcome[0]


async def _boxed(work: Coroutine[Any, Any, T]) -> tuple[T]:
    """Return what ``work`` returns, told apart from nothing."""
    return (await work,)


class MalformedBody(HeadraceError):
    """A body is not JSON: nobody gets to ask what it means."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        reasons = "; ".join(f"line {d.line}, column {d.column}: {d.message}" for d in diagnostics)
        super().__init__(f"the body is not JSON: {reasons}")
        self.diagnostics = diagnostics


class WrongBody(Refused):
    """A body is JSON, and not what its endpoint takes: ``diagnostics`` lists every reason."""


@dataclass(frozen=True, slots=True)
class Received(Generic[R]):
    """The record in a body; without it there are at least those of its options that are right."""

    site: Site
    record: R | None
    values: Mapping[str, Any]
    wrong: Sequence[Diagnostic]
    """What is wrong with it, keys that are given twice included: then nobody may go by the record."""


async def record_of(
    req: Request,
    record: type[R],
    outcome: str,
    turns: ThreadQueue,
    most_values: int = VALUES,
    most: int = LARGEST,
) -> R:
    """Return the record in a body of at most so many bytes, read in a thread when it is its turn.

    A body that is made for it takes seconds to read, unless it is small or may have but few values.

    Raises:
        falcon.HTTPError: see `read_json_body` and `Request.in_turn`.
        TooManyBodies: see `ThreadQueue`.
        MalformedBody: it is not JSON, or has more values.
        Refused: with all that is wrong with it, and the ``outcome``.
    """
    body = await read_json_body(req, most)
    found = await req.in_turn(turns, received, body, record, most_values)
    if found.record is None or found.wrong:
        raise Refused(in_file_order(found.wrong), outcome)
    return found.record


def received(body: bytes, record: type[R], most_values: int = VALUES) -> Received[R]:
    """Return what a body holds of a record.

    Raises:
        MalformedBody: it is not JSON.
    """
    document, twice = document_of(body, most_values)
    site = Site(document)
    built, values, faults = loaded(record, document.value)
    return Received(site, built, values, [*twice, *map(site.diagnose, faults)])


async def read_json_body(req: falcon.asgi.Request, most: int = LARGEST) -> bytes:
    """Return the bytes of a JSON body. A body without a content type is taken for JSON.

    Raises:
        falcon.HTTPUnsupportedMediaType: it says that it is something else.
        falcon.HTTPContentTooLarge: it is, or says that it is, larger than ``most`` bytes.
    """
    media_type = (req.content_type or falcon.MEDIA_JSON).partition(";")[0].strip().lower()
    if media_type != falcon.MEDIA_JSON:
        raise falcon.HTTPUnsupportedMediaType(
            description=f"the body has to be {falcon.MEDIA_JSON}, not {media_type}: "
            f"send 'Content-Type: {falcon.MEDIA_JSON}', or none at all"
        )
    if (req.content_length or 0) > most:
        raise too_large(most)
    body = bytearray()
    async for chunk in req.stream:
        body += chunk
        if len(body) > most:
            raise too_large(most)
    return bytes(body)


def document_of(body: bytes, most_values: int = VALUES) -> tuple[Document, list[Diagnostic]]:
    """Return the document of a JSON body, and the keys that are given twice in it.

    Raises:
        MalformedBody: it is not JSON.
    """
    try:
        return read(body, None, "json", most_values), []
    except Unreadable as cause:
        if cause.document is None:
            raise MalformedBody(cause.diagnostics) from cause
        return cause.document, cause.diagnostics


def created(
    body: bytes,
    load: Callable[[Document], tuple[T | None, list[Diagnostic]]],
    noun: str,
    outcome: str,
) -> tuple[T, list[Diagnostic]]:
    """Return what a body describes, as ``load`` reads it, and what is odd about it.

    Raises:
        MalformedBody: it is not JSON.
        Refused: with all that is wrong with it; it is called by its id, if it has one.
    """
    document, twice = document_of(body)
    made, diagnostics = load(document)
    if made is None or twice:
        id = document.value.get("id") if isinstance(document.value, dict) else None
        called = f"{noun} '{printable(id[:_MOST_ID])}'" if isinstance(id, str) else f"the {noun}"
        raise Refused(in_file_order([*twice, *diagnostics]), f"{called} {outcome}")
    return made, diagnostics


def too_large(most: int) -> falcon.HTTPContentTooLarge:
    """Return the refusal of a body; the connection ends with it, because the rest is not read."""
    return falcon.HTTPContentTooLarge(
        description=f"the body is larger than {most} bytes", headers={"Connection": "close"}
    )
