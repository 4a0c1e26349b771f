"""Of which class the failures of the `http` output are, and what is done of a batch that fails."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from headrace.compiler.errors import BatchFailed, Unreachable
from tests.http_sides import CLASSES, failure, rude
from tests.peer import Peer, replies
from tests.promises import promise
from tests.services.authority import Authority


@promise(
    "http.output.fails.later",
    "http.output.fails.broken",
    "http.output.fails.not_let_in",
    "http.output.fails.nothing_there",
    "http.output.fails.redirected",
    "http.output.fails.refused",
)
@pytest.mark.parametrize(("status", "expected"), CLASSES)
async def test_an_answer_has_the_class_of_its_status(server: Peer, status: int, expected: str):
    server.answers = [replies(status=status, reason="So")]

    failed = await failure({"url": server.url()})

    assert failed.failure == expected
    assert failed.is_answered is (status >= 500 or expected == "invalid")
    assert str(failed) == f"POST {server.url()}: {status} So"


@promise("http.output.fails.no_answer")
async def test_nobody_who_answers_is_unavailable(unused_tcp_port: int):
    for url in (f"http://127.0.0.1:{unused_tcp_port}/", "http://nowhere.invalid/"):
        failed = await failure({"url": url})

        assert type(failed) is Unreachable
        assert not failed.is_answered
        assert failed.failure == "unavailable"


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read to the end, and say nothing."""
    await reader.read()


async def curt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hang up on the first words."""
    await reader.read(1000)


@asynccontextmanager
async def met(answer: Callable[..., Any]) -> AsyncIterator[str]:
    """Give the url of a server that speaks to one client like this, and wait until it has hung up."""
    over = asyncio.Event()

    async def spoken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await answer(reader, writer)
            writer.close()
            await writer.wait_closed()
        over.set()

    async with rude(spoken) as url:
        yield url
        await over.wait()


@promise("http.output.fails.no_answer")
@pytest.mark.parametrize("answer", [silent, curt])
async def test_a_connection_that_does_not_come_about_is_unavailable(answer: Callable[..., Any]):
    async with met(answer) as url:
        failed = await failure({"url": url.replace("http:", "https:"), "timeout_seconds": 0.1})

    assert type(failed) is Unreachable
    assert failed.failure == "unavailable"


@promise("http.output.fails.cut_off")
@pytest.mark.parametrize("answer", [silent, curt])
async def test_a_request_that_was_sent_and_is_not_answered_is_unclear(answer: Callable[..., Any]):
    async with met(answer) as url:
        failed = await failure({"url": url, "timeout_seconds": 0.1})

    assert type(failed) is Unreachable
    assert failed.failure == "unclear"


@promise("http.output.fails.cut_off")
async def test_a_connection_that_broke_while_it_waited_for_the_next_request_is_unclear(
    server: Peer,
):
    async def answers_once(request: web.Request) -> web.Response:
        return web.Response()

    async def hangs_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.answers = [answers_once, hangs_up]

    failed = await failure({"url": server.url(), "body": "message"}, [1, 2, 3])

    assert len({each.port for each in server.received}) == 1
    assert failed.failure == "unclear"
    assert (list(failed.done), dict(failed.refused)) == ([0], {})


async def greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a server of mail does."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"220 mail.example.org ready\r\n")
    writer.close()


@promise("http.output.fails.stranger")
async def test_who_does_not_speak_as_the_url_says_is_misconfigured(server: Peer):
    async with rude(greeting) as url:
        other = await failure({"url": url})
    plain = await failure({"url": server.url().replace("http:", "https:")})

    assert (type(other), other.failure) == (BatchFailed, "misconfigured")
    assert (type(plain), plain.failure) == (Unreachable, "misconfigured")


@promise("http.output.fails.stranger")
async def test_a_certificate_that_nobody_trusts_is_misconfigured(authority: Authority):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server_cert_file, authority.server_key_file)
    async with await asyncio.start_server(silent, "127.0.0.1", 0, ssl=tls) as it:
        port = it.sockets[0].getsockname()[1]
        failed = await failure({"url": f"https://127.0.0.1:{port}/"})

    assert "CERTIFICATE_VERIFY_FAILED" in str(failed)
    assert failed.failure == "misconfigured"


@promise("http.output.fails.redirected")
async def test_a_redirect_without_end_is_misconfigured(server: Peer):
    server.answers = [replies(status=307, headers={"Location": "/in"})] * 50

    failed = await failure({"url": server.url()})

    assert failed.failure == "misconfigured"


# Which messages


@pytest.mark.parametrize("options", [{}, {"template": "{n}"}], ids=["JSON", "a template"])
async def test_of_single_messages_it_is_told_which_are_done_and_which_is_refused(
    server: Peer, options: dict[str, Any]
):
    server.answers = [replies(), replies(), replies(status=422)]

    failed = await failure(
        {"url": server.url(), "body": "message", **options}, [{"n": n} for n in range(5)]
    )

    assert type(failed) is BatchFailed
    assert failed.failure == "invalid"
    assert list(failed.done) == [0, 1]
    assert failed.refused == {2: str(failed)}
    assert len(server.received) == 3


@pytest.mark.parametrize(("status", "kind"), [(503, Unreachable), (404, BatchFailed)])
async def test_a_message_is_not_at_fault_for_what_is_not_its_content(
    server: Peer, status: int, kind: type
):
    server.answers = [replies(), replies(status=status)]

    failed = await failure({"url": server.url(), "body": "message"}, [1, 2, 3])

    assert type(failed) is kind
    assert (list(failed.done), dict(failed.refused)) == ([0], {})
    assert failed.is_answered is (status == 503 or failed.failure == "invalid")


async def test_of_a_batch_in_one_request_nothing_is_told(server: Peer):
    server.answers = [replies(status=400)]

    failed = await failure({"url": server.url()}, [1, 2, 3])

    assert (list(failed.done), dict(failed.refused)) == ([], {})
