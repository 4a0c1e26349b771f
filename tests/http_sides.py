"""Both sides of HTTP as components of a test: an output that is open, an input that is built."""

import asyncio
import contextlib

import pytest

from headrace.compiler.errors import BatchFailed
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpInput, HttpOutput
from headrace.connectors.http.sink import HttpSink
from headrace.connectors.http.source import Posts
from tests.doubles import StubContext

BEARER = {"type": "bearer", "token": "${TOKEN}"}
HEADER = {"type": "header", "name": "X-Key", "value": "${KEY}"}

STATUSES = {
    "unavailable": (408, 425, 429, 500, 502, 503, 504, 599, 999),
    "misconfigured": (300, 301, 304, 399, 401, 403, 404, 405, 410),
    "invalid": (400, 402, 406, 409, 411, 413, 414, 415, 422, 431, 451, 499),
}
"""Answers by the class of their failure."""
CLASSES = [(status, failure) for failure, statuses in STATUSES.items() for status in statuses]


def resolves_to_nothing(key: str) -> Fault:
    """Return why a credential is refused that is empty."""
    return Fault("empty-credential", f"'{key}' resolves to nothing", path=("auth", key))


def no_header_can_carry(key: str) -> Fault:
    """Return why a credential is refused that is no value of a header."""
    return Fault(
        "illegal-header",
        f"'{key}' resolves to what no header can carry",
        expected="no line breaks or control characters, and no blanks around it",
        path=("auth", key),
    )


@contextlib.asynccontextmanager
async def sink(options: dict, **secrets: str):
    """Open the output; finish it in the end."""
    opened = HttpOutput.load(options).open(StubContext(secrets=secrets))
    assert isinstance(opened, HttpSink)
    await opened.start()
    try:
        yield opened
    finally:
        await opened.finish()


async def failure(options: dict, batch: list | None = None, **secrets: str) -> BatchFailed:
    """Return what the writing of a batch raises."""
    async with sink(options, **secrets) as opened:
        with pytest.raises(BatchFailed) as failed:
            await opened.write(batch or [1])
    return failed.value


@contextlib.asynccontextmanager
async def rude(conversation):
    """Run a server that is none of HTTP; give its url."""
    server = await asyncio.start_server(conversation, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"


def posts(options: dict, **secrets: str) -> Posts:
    """Return the built source, which is the ingress as well."""
    ctx = StubContext(secrets=secrets)
    source = HttpInput.load(options).source(ctx)
    assert ctx.ingress is source
    return source


def admitted(source: Posts, **headers: str) -> bool:
    """Return whether a post with these headers is admitted."""
    return source.admits is None or source.admits(lambda name: headers.get(name.replace("-", "_")))
