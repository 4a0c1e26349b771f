"""The dead letters over the API: what failed alike, their lists, one with what is in it, and their end.

They are told whether their pipeline runs or is deleted. What is in one may be large: it is sent in parts,
as it is stored, and never decoded here.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.errors import UnknownDeadLetter
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import WritingTurn
from headrace.compiler.runtime.monitoring.letterfigures import (
    LETTER_STAGES,
    DeadLetterPage,
    DeadLetterRecord,
    DeadLetterSignature,
    LettersWanted,
    PayloadCoding,
    StoredLetter,
)
from headrace.compiler.text.suggest import one_of
from headrace.web.auth.access import Access
from headrace.web.endpoint import FAILURE, MALFORMED, Answer, Endpoint, Query, refusals
from headrace.web.parameters import WholeNumber, WrongParameter, text_of
from headrace.web.service import Service

LETTERS_PATH = "/api/pipelines/{pipeline_id}/dead-letters"
MOST_DELETED = 1_000
"""Ids that are deleted at once: they stand in the first line of a request, which has a bound."""
MOST_MESSAGE = 4_096
"""Characters of a message that is looked for: those of letters are shorter."""
HIGHEST = 2**63 - 1
"""Above all ids."""
SENT_AT_ONCE = 96 * 1024
"""Bytes of a content that are sent at once; parted so, base64 needs no filling in between."""

STAGE = Query(
    "stage",
    "Only those of this stage.",
    Annotated[str, Meta(extra_json_schema={"enum": [*LETTER_STAGES]})],
)
MESSAGE = Query(
    "message",
    "Only those with exactly this message.",
    Annotated[str, Meta(extra_json_schema={"maxLength": MOST_MESSAGE})],
)
PIPELINE = Query("pipeline", "Only of this pipeline; absent: of all.", str)
BEFORE = Query(
    "before",
    "Only letters before the one with this id, such as `next` of the page before. Absent: the newest.",
    Annotated[int, Meta(ge=0, extra_json_schema={"maximum": HIGHEST})],
)
LIMIT = WholeNumber("limit", "How many at most.", default=200, least=1, most=200)
IDS = Query(
    "ids",
    f"Ids, parted by commas, {MOST_DELETED:,} at most. Those of other pipelines stay.",
    Annotated[str, Meta(extra_json_schema={"examples": ["17,18"]})],
)
ALL = Query(
    "all",
    "`true`: all of the pipeline. It has to be said.",
    Annotated[str, Meta(extra_json_schema={"enum": ["true"]})],
)
WHICH = "'ids', or 'stage' and 'message' or one of them, or 'all=true'"

_ID = re.compile("[1-9][0-9]{0,18}")
_NUMBER = re.compile("[0-9]{1,19}")


class DeletedLetters(msgspec.Struct):
    """What became of a request to delete dead letters."""

    deleted: Annotated[Count, Meta(description="How many dead letters are gone.")]


async def list_dead_letters(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what failed alike; nothing where no store is open."""
    resp.data = encode(await service.engine.letter_signatures(text_of(req, PIPELINE.name)))


async def list_pipeline_letters(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer a page of the letters of a pipeline."""
    page = await service.engine.letters(pipeline_id, _wanted(req), _before(req), LIMIT.of(req))
    resp.data = encode(page)


async def get_dead_letter(
    service: Service,
    req: falcon.asgi.Request,
    resp: falcon.asgi.Response,
    *,
    pipeline_id: str,
    letter_id: str,
) -> None:
    """Answer one letter with what is in it, part by part."""
    if (id := _id(letter_id)) is None:
        raise UnknownDeadLetter(pipeline_id, letter_id)
    letter = await service.engine.letter(pipeline_id, id)
    coding = await _coding(letter, WritingTurn(service.clock))
    resp.stream = _parts(letter, coding, WritingTurn(service.clock))


async def delete_dead_letters(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Delete those that are named, those that are alike, or all."""
    ids, wanted = _ids(req), _wanted(req)
    is_all = _is_all(req)
    filtered = wanted != LettersWanted()
    given = [each for each, is_given in ((IDS, ids), (STAGE, filtered), (ALL, is_all)) if is_given]
    if len(given) != 1:
        found = "all of them" if given else ""
        raise WrongParameter(IDS.name, found and req.query_string, f"either {WHICH}")
    engine = service.engine
    if ids:
        deleted = await engine.delete_letters(pipeline_id, ids)
    else:
        deleted = await engine.delete_all_letters(pipeline_id, wanted)
    resp.data = encode(DeletedLetters(deleted))


def _wanted(req: falcon.asgi.Request) -> LettersWanted:
    """Return which letters are asked for.

    Raises:
        WrongParameter: there is no such stage, or no letter has a message that is so long.
    """
    stage, message = text_of(req, STAGE.name), text_of(req, MESSAGE.name)
    if stage is not None and stage not in LETTER_STAGES:
        raise WrongParameter(STAGE.name, stage, one_of(LETTER_STAGES))
    if message is not None and not 0 < len(message) <= MOST_MESSAGE:
        expected = f"the message of dead letters, of 1 to {MOST_MESSAGE:,} characters"
        raise WrongParameter(MESSAGE.name, message, expected)
    return LettersWanted(stage, message)


def _before(req: falcon.asgi.Request) -> int:
    """Return the id that a page ends before.

    Raises:
        WrongParameter: it is none.
    """
    text = text_of(req, BEFORE.name)
    if text is None:
        return HIGHEST
    if not _NUMBER.fullmatch(text) or int(text) > HIGHEST:
        raise WrongParameter(BEFORE.name, text, "the id of a dead letter, such as 17")
    return int(text)


def _ids(req: falcon.asgi.Request) -> list[int]:
    """Return the ids that are named.

    Raises:
        WrongParameter: one of them is none, or there are too many.
    """
    text = text_of(req, IDS.name)
    if text is None:
        return []
    found = text.split(",", MOST_DELETED)
    if len(found) > MOST_DELETED:
        raise WrongParameter(IDS.name, text, f"at most {MOST_DELETED:,} ids")
    ids = [_id(each) for each in found]
    if None in ids:
        wrong = found[ids.index(None)]
        raise WrongParameter(IDS.name, wrong, "ids of dead letters, such as 17,18")
    return [each for each in ids if each is not None]


def _is_all(req: falcon.asgi.Request) -> bool:
    """Return whether all are meant.

    Raises:
        WrongParameter: nobody can tell.
    """
    text = text_of(req, ALL.name)
    if text not in (None, "true"):
        raise WrongParameter(ALL.name, text or "", "true")
    return text is not None


def _id(text: str) -> int | None:
    """Return the id that a text is, in the one way of writing it; None: it is none."""
    id = int(text) if _ID.fullmatch(text) else 0
    return id if 0 < id <= HIGHEST else None


async def _coding(letter: StoredLetter, turn: WritingTurn) -> PayloadCoding:
    """Return how a payload is told."""
    if letter.payload is None or letter.body is None:
        return "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in _cut(letter.body, letter.start):
            decoder.decode(part)
            await turn.end()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "base64"
    return "utf-8"


async def _parts(
    letter: StoredLetter, coding: PayloadCoding, turn: WritingTurn
) -> AsyncIterator[bytes]:
    """Yield a `DeadLetterRecord` part by part."""
    head = encode(letter.entry).removesuffix(b"}")
    is_damaged = letter.body is None
    yield b"%s,%s" % (head, encode({"damaged": is_damaged})[1:-1])
    if letter.body is not None and letter.payload is None:
        yield b',"messages":'
        for part in _cut(letter.body, letter.start):
            yield bytes(part)
            await turn.end()
    elif letter.body is not None and letter.payload is not None:
        yield b',"payload":"'
        for told in _told(letter.body, letter.start, coding):
            yield told
            await turn.end()
        facts = {"payload_encoding": coding, "is_message": letter.payload.is_message}
        yield b'",%s,"metadata":%s' % (encode(facts)[1:-1], letter.payload.metadata)
    yield b"}"


def _told(body: bytes, start: int, coding: PayloadCoding) -> Iterator[bytes]:
    """Yield the text of a payload, as it stands in JSON."""
    if coding == "base64":
        yield from map(b64encode, _cut(body, start))
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for part in _cut(body, start):
        yield encode(decoder.decode(part))[1:-1]


def _cut(body: bytes, start: int) -> Iterator[memoryview]:
    """Yield what is in a body, in parts."""
    content = memoryview(body)
    for at in range(start, len(body), SENT_AT_ONCE):
        yield content[at : at + SENT_AT_ONCE]


_UNREADABLE = refusals(_503="The disk cannot be read.")

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/dead-letters",
        operation="listDeadLetters",
        tag="dead letters",
        access=Access.READ,
        summary="List what failed alike of which there are dead letters, also of deleted pipelines.",
        query=(PIPELINE,),
        responses={
            200: Answer("The last seen first, 1,000 at most.", list[DeadLetterSignature]),
            **MALFORMED,
            **_UNREADABLE,
        },
        respond=list_dead_letters,
    ),
    Endpoint(
        method="GET",
        path=LETTERS_PATH,
        operation="listPipelineDeadLetters",
        tag="dead letters",
        access=Access.READ,
        summary="List the dead letters of a pipeline, without what is in them.",
        query=(STAGE, MESSAGE, BEFORE, LIMIT.query),
        responses={
            200: Answer("The newest first; none of a pipeline that nobody knows.", DeadLetterPage),
            **MALFORMED,
            **_UNREADABLE,
        },
        respond=list_pipeline_letters,
    ),
    Endpoint(
        method="GET",
        path=f"{LETTERS_PATH}/{{letter_id}}",
        operation="getDeadLetter",
        tag="dead letters",
        access=Access.ADMIN,
        summary="Read one dead letter with its messages, or with what an input received.",
        responses={
            200: Answer("The whole letter, which may be large.", DeadLetterRecord),
            **refusals(_404="The pipeline has no such dead letter."),
            **_UNREADABLE,
        },
        respond=get_dead_letter,
    ),
    Endpoint(
        method="DELETE",
        path=LETTERS_PATH,
        operation="deleteDeadLetters",
        tag="dead letters",
        access=Access.ADMIN,
        summary="Delete dead letters of a pipeline: some by their ids, those of a stage or message, or all."
        " They cannot be had back.",
        query=(IDS, STAGE, MESSAGE, ALL),
        responses={
            200: Answer("How many are gone.", DeletedLetters),
            **refusals(
                _400=f"A parameter has a value that it does not take, or it is not said which: {WHICH}.",
                _500=FAILURE,
                _503="The disk cannot be written; what is left can be deleted later.",
            ),
        },
        respond=delete_dead_letters,
    ),
)
