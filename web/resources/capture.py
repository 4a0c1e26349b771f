"""`GET /api/capture`: what arrives at inputs, line by line, and what servers answer `http` transforms.

    {"headrace":"capture","version":1,"started_at":"2026-03-02T06:00:00.000000+00:00","pipelines":[],"redacted":[]}
    {"at":12.5,"to":"press-7.inputs[0]","batch":[{"temp":60}]}
    {"at":600.0,"end":"seconds","records":1,"dropped":0}

It goes on until the client leaves or a bound is met, and nothing is left of it then. A client that reads
too slowly loses records, which the capture counts; nothing else waits for it. A blank line comes every
15 seconds in which there is nothing else, so that proxies go on waiting.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from headrace.compiler.runtime.capturing.capturerecords import CaptureLine
from headrace.compiler.runtime.capturing.captures import CaptureRequest
from headrace.web.asgi import AsgiMessage, Receive, Send, gone
from headrace.web.auth.access import Access
from headrace.web.endpoint import MALFORMED, Answer, Endpoint, Query, refusals
from headrace.web.engineprotocol import CaptureReader
from headrace.web.ignoring import fields
from headrace.web.parameters import WholeNumber, WrongParameter, once
from headrace.web.resources.streaming import ENDING, beginning, part, signed_out, until_one_ends
from headrace.web.service import Service

CAPTURE_PATH = "/api/capture"
MEDIA_TYPE = "text/x-ndjson"
"""As `application/x-ndjson`, of which generators of clients make nothing: as text they read it."""
SECONDS = WholeNumber(
    "seconds", "How long it goes on at most.", default=600, least=1, most=24 * 60 * 60
)
BYTES = WholeNumber(
    "bytes", "How many bytes it has at most.", default=64 * 2**20, least=1, most=2**30
)
MOST_PATHS = 100
MOST_SEGMENTS = 32
"""Of a path to redact: each of its beginnings may be one key, so all of them are looked up."""


class CaptureStream:
    """Answers each request with a capture of its own.

    It ends with the session, or the token, that its client was let in by.
    """

    def __init__(self, service: Service) -> None:
        self._engine = service.engine

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Stream until the client leaves, is signed out, or the capture ends.

        Raises:
            WrongParameter, UnknownPipeline, TooManyCaptures: nothing was sent.
        """
        capture = self._engine.capture(asked_for(scope["query_string"]))
        try:
            await send(beginning(MEDIA_TYPE))
            await until_one_ends(
                "a capture",
                _copy(capture, send),
                gone(receive),
                _end_once_signed_out(scope, capture),
            )
        finally:
            capture.close()
        await send(ENDING)


async def _end_once_signed_out(scope: AsgiMessage, capture: CaptureReader) -> None:
    await signed_out(scope)
    capture.end("signed out")
    await asyncio.Future()  # whoever copies is to send what waits, and ends with it


async def _copy(capture: CaptureReader, send: Send) -> None:
    async for lines in capture:
        await send(part(lines))


def asked_for(query: bytes) -> CaptureRequest:
    """Return what a query asks for.

    Raises:
        WrongParameter: a value is none that the parameter takes.
    """
    given = defaultdict[str, list[str]](list)
    for name, value in fields(query):
        given[name].append(value)
    if "" in given["pipeline"]:
        raise WrongParameter("pipeline", "", "the id of a pipeline")
    for path in given["redact"]:
        segments = path.split(".")
        if "" in segments:
            raise WrongParameter("redact", path, "a path such as patient.name or $meta.topic")
        if len(segments) > MOST_SEGMENTS:
            raise WrongParameter("redact", path, f"a path of at most {MOST_SEGMENTS} names")
    if len(given["redact"]) > MOST_PATHS:
        raise WrongParameter("redact", given["redact"][-1], f"at most {MOST_PATHS} paths")
    return CaptureRequest(
        tuple(dict.fromkeys(given["pipeline"])),
        SECONDS.number(once(SECONDS.name, given[SECONDS.name])),
        BYTES.number(once(BYTES.name, given[BYTES.name])),
        tuple(dict.fromkeys(given["redact"])),
    )


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path=CAPTURE_PATH,
        operation="captureMessages",
        tag="events",
        access=Access.ADMIN,
        summary="Follow all that arrives at inputs, to play it again.",
        query=(
            Query(
                "pipeline",
                "Only what arrives at this pipeline. May be given more than once.",
                list[str],
            ),
            SECONDS.query,
            BYTES.query,
            Query(
                "redact",
                "A path in messages, such as `patient.name`, or of metadata, such as `$meta.topic`, whose"
                " values are replaced by digits that are the same for equal ones. May be given more than"
                " once. With any, no replies of servers are captured.",
                list[str],
            ),
        ),
        responses={
            200: Answer("Lines of JSON.", CaptureLine, media_type=MEDIA_TYPE),
            **MALFORMED,
            **refusals(
                _404="No pipeline under one of the ids.",
                _503="Too many captures are being taken; try again later.",
            ),
        },
        ahead=CaptureStream,
        is_stream=True,
    ),
)
