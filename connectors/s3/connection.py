"""A client of an object store that knows what it is told and nothing else, and what a store says in words.

The library looks for keys, regions, endpoints, proxies, authorities and even models of services in the
environment, in files of the user, and on the network. None of that may change where data goes.
"""

from __future__ import annotations

import ssl
from asyncio import Timeout
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from io import BytesIO
from typing import Any

import aiohttp
from aiobotocore.awsrequest import AioAWSResponse
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from botocore.awsrequest import AWSPreparedRequest
from botocore.configprovider import (
    BOTOCORE_DEFAUT_SESSION_VARIABLES,
    ConfigValueStore,
    ConstantProvider,
)
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError
from yarl import URL

from headrace.compiler.clock import Clock
from headrace.compiler.errors import FailureClass
from headrace.connectors.network.refusal import CONNECT_SECONDS, quoted, unanswered
from headrace.connectors.s3 import storefailures

MIB = 1024 * 1024
PIECE_BYTES = 64 * 1024
"""How much of a body is handed to the system at a time; a shorter one goes with its headers."""
MODELS = ("service-2", "endpoint-rule-set-1")
"""What the library reads about a service to make a client, and keeps: a tenth of a second."""

DENIED = frozenset(map(str, storefailures.DENIED.codes))
"""Codes of a store that knows who asks, and does not let them do this."""
TAKEN = frozenset({"PreconditionFailed", "412"})
UNKNOWN_CONDITION = frozenset({"NotImplemented", "501"})
SILENT = "does not answer"
NO_STORE = "answers, and not as S3 does"
REGION = "x-amz-bucket-region"
"""The header that tells where a bucket is."""


@dataclass(frozen=True)
class StoreAccount:
    """A bucket, and the key to it."""

    bucket: str
    region: str
    endpoint: str | None
    """Without one, that of the vendor in the region."""
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)


@dataclass(frozen=True)
class Limits:
    """How much is asked of a store at a time, and how long it may take."""

    connections: int = 16
    """Most that one output has."""
    silent_seconds: float = 30.0
    """How long a store may take neither anything of a body nor answer."""
    answer_bytes: int = 2 * MIB
    """What an answer may have: one that lists a thousand keys, of which one was asked for, has less."""
    whole_bytes: int = 16 * MIB
    """Largest part that is uploaded with one request."""
    piece_bytes: int = 8 * MIB
    """Of a larger one, with each request."""
    pieces_at_once: int = 4
    abort_seconds: float = 0.4
    """How long it may take to give up an upload in pieces, which may be at the end of a pipeline."""


@cache
def session() -> AioSession:
    """Return the session that looks nowhere; it has read what clients are made of.

    It keeps nothing of them, so one will do. The first time takes its time.
    """
    made = AioSession()
    defaults = {
        name: ConstantProvider(default)
        for name, (_, _, default, _) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
        if not name.endswith("_file")  # those are files of the user
    }
    made.register_component("config_store", ConfigValueStore(defaults))
    # Of the places that it would look for models at, one belongs to the user.
    loader = Loader([Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    for kind in MODELS:
        loader.load_service_model("s3", kind)
    for name in ("endpoints", "partitions"):
        loader.load_data(name)
    made.register_component("data_loader", loader)
    return made


def client(made: AioSession, account: StoreAccount, clock: Clock, limits: Limits) -> Any:
    """Return the context of a client: it never tries again by itself, and follows nobody."""
    is_told = account.endpoint is not None
    config = AioConfig(
        http_session_cls=partial(Transport, account.tls, clock, limits),
        retries={"total_max_attempts": 1},
        user_agent="headrace",
        ignore_configured_endpoint_urls=True,
        # Checksums in trailers are for the vendor alone: other stores refuse them. What is sent is
        # signed with its hash, or has one that all of them know.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={
            "addressing_style": "path" if is_told else "auto",
            "us_east_1_regional_endpoint": "regional",
            "use_arn_region": False,
        },
    )
    return made.create_client(
        "s3",
        region_name=account.region,
        endpoint_url=account.endpoint,
        aws_access_key_id=account.access_key_id,
        aws_secret_access_key=account.secret_access_key,
        config=config,
    )


class Transport(AbstractAsyncContextManager["Transport"]):
    """What the library sends its requests with (`http_session_cls`), in place of its own.

    Its own takes neither a TLS context nor a redirect for an answer, and reads one to its end.
    """

    def __init__(
        self, tls: ssl.SSLContext | None, clock: Clock, limits: Limits, **_: object
    ) -> None:
        """Take what the connection says; what the library says of proxies, files and times is not used."""
        self._clock, self._limits = clock, limits
        self._session = ClientSession(
            connector=TCPConnector(limit=limits.connections, ssl=tls or True),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
        )

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, request: AWSPreparedRequest) -> AioAWSResponse:
        """Return the answer to a request, which is signed.

        Raises:
            TimeoutError: for too long nothing of the body was taken, or no answer came.
            Redirected: it is told to go elsewhere, and not in which region the bucket is. The library
                would ask for that, be told to go elsewhere, ask for it, and so on.
            NotOfAStore: the answer is longer than any that a store sends.
            aiohttp.ClientError: there is none.
        """
        # The library has made a file of it; of that, it is no copy.
        body = request.body.getvalue() if isinstance(request.body, BytesIO) else request.body or b""
        headers = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
        }
        async with self._clock.timeout(self._limits.silent_seconds) as limit:
            answer = await self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=headers | {"Accept-Encoding": "identity"},
                data=flowing(body, limit, self._until) if len(body) > PIECE_BYTES else body or None,
                allow_redirects=False,
            )
            async with answer:
                if 300 <= answer.status < 400 and REGION not in answer.headers:
                    raise Redirected(answer.headers.get("Location", ""))
                said = await self._read(answer)
        told = {
            name.decode("utf-8", "replace").lower(): value.decode("utf-8", "replace")
            for name, value in answer.raw_headers
        }
        return AioAWSResponse(str(answer.url), answer.status, told, Said(said))

    def _until(self) -> float:
        return self._clock.monotonic() + self._limits.silent_seconds

    async def _read(self, answer: ClientResponse) -> bytes:
        said = bytearray()
        async for piece in answer.content.iter_any():
            said += piece
            if len(said) > self._limits.answer_bytes:
                raise NotOfAStore
        return bytes(said)


@dataclass
class Said:
    """The body of an answer that has been read, as the library asks for it."""

    body: bytes = field(repr=False)

    async def read(self) -> bytes:
        """Return it."""
        return self.body


async def flowing(
    body: bytes, limit: Timeout, until: Callable[[], float]
) -> AsyncIterator[memoryview]:
    """Yield a body in pieces; whenever one of them was taken, push the time limit on."""
    rest = memoryview(body)
    for start in range(0, len(rest), PIECE_BYTES):
        yield rest[start : start + PIECE_BYTES]
        with suppress(RuntimeError):  # it is over: the answer came before the end of the body
            limit.reschedule(until())


class StoreError:
    """An error that a store answers with."""

    def __init__(self, cause: ClientError) -> None:
        said = cause.response
        error: dict[str, Any] = said.get("Error", {})
        about = said.get("ResponseMetadata", {})
        self.code = str(error.get("Code", "?"))
        self.status = int(about.get("HTTPStatusCode", 0))
        headers = about.get("HTTPHeaders", {})
        self.region: str | None = error.get("Region") or headers.get(REGION)
        self.is_of_a_store = not self.code.isdecimal()
        """Whether it has a code, as every answer with a body has; others may be of what stands before."""
        self.message = str(error.get("Message", ""))
        self._is_page = "html" in headers.get("content-type", "")
        codes = storefailures.codes_of(self.code, self.status)
        self.failure = storefailures.FAILURES.of(*codes)
        """The class of what failed by it."""
        self.is_passing = not storefailures.PASSING.isdisjoint(codes)
        """Whether the answer will be another one in a while."""
        is_refusal = 400 <= self.status < 500 and self.status not in (401, 404, 407)
        self.is_of_this_request = (
            is_refusal and not self.is_passing and self.code not in storefailures.OF_ALL
        )
        """Whether others may be answered otherwise: a 4xx that is neither of now nor of who asks."""
        self.is_certain = not storefailures.OF_ONE.isdisjoint(codes)
        """Whether that is certain, and so it is that another try is answered alike."""

    def words(self, redact: Callable[[str], str], key: str = "") -> str:
        """Return what the store does, in its words and without secrets: ``says 'SlowDown: ...'``.

        What names the key is left out, or every part had words of its own.
        """
        if self._is_page and not self.is_of_a_store:
            return f"{NO_STORE} ({self.status})"
        told, message = self.code, self.message
        if message and message != told and (not key or key not in message):
            told = f"{told}: {message}"
        return f"says '{quoted(told, redact)}'"


class NotOfAStore(Exception):
    """No store answers like this."""


class Redirected(Exception):
    """An answer that points elsewhere: where, is no part of its text, for it may hold a credential."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def words(self, redact: Callable[[str], str]) -> str:
        """Return what the store does: ``answers with a redirect to '...'``."""
        return f"answers with a redirect to '{quoted(self.target, redact)}'"


UNANSWERED = (BotoCoreError, aiohttp.ClientError, OSError, TimeoutError, NotOfAStore, Redirected)
"""What is raised where a store has not answered as stores do."""


def silence(cause: BaseException) -> str:
    """Return what a store does that does not answer, or not as a store: ``does not answer: ...``."""
    if (error := tls_error(cause)) is not None:
        return f"breaks off the TLS handshake: {getattr(error, 'verify_message', error.reason)}"
    match cause:
        case TimeoutError():
            return SILENT
        case aiohttp.ClientResponseError() | ResponseParserError() | NotOfAStore():
            return NO_STORE  # no HTTP, longer than anything a store says, or no XML
        case aiohttp.ClientConnectorError():
            return f"{SILENT}: {unanswered(cause.os_error)}"
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError():
            return "closed the connection"
        case _:
            return f"cannot be asked: {type(cause).__name__}"


def silence_class(cause: BaseException) -> FailureClass:
    """Return the class of what failed because a store has not answered as stores do."""
    if isinstance(cause, Redirected):
        return storefailures.FAILURES.of(storefailures.REDIRECTED)
    if tls_error(cause) is not None:
        return storefailures.FAILURES.of(storefailures.TLS_BROKEN)
    is_other = silence(cause) == NO_STORE
    return storefailures.FAILURES.of(storefailures.NOT_S3 if is_other else storefailures.NO_ANSWER)


def tls_error(cause: BaseException) -> ssl.SSLError | None:
    """Return what went wrong with a handshake, if that is what happened."""
    found = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None)
    return found if isinstance(found, ssl.SSLError) else None
