"""What the `http` output says of servers that fail, and what it does not say."""

import asyncio
import base64
import struct
from socket import SO_LINGER, SOL_SOCKET

import pytest
from aiohttp import web

from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.http import HttpOutput
from tests.doubles import StubContext
from tests.http_sides import BEARER, failure, rude, sink
from tests.peer import Peer, replies
from tests.promises import promise

LINGER_0 = struct.pack("ii", 1, 0)  # closing sends a reset


@promise("http.output.written", "http.output.away")
@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (200, None, None),
        (204, None, None),
        (299, "Fine", None),
        (304, "Not Modified", BatchFailed),
        (400, "Bad Request", BatchFailed),
        (401, "Unauthorized", BatchFailed),
        (408, "Request Timeout", BatchFailed),
        (413, "Request Entity Too Large", BatchFailed),
        (429, "Too Many Requests", Unreachable),
        (500, "Internal Server Error", Unreachable),
        (503, "Service Unavailable", Unreachable),
        (599, "Odd", Unreachable),
    ],
)
async def test_any_status_but_2xx_fails_and_only_some_are_worth_a_pause(
    server: Peer, status, reason, kind
):
    server.answers = [replies(status=status, reason=reason)]

    async with sink({"url": server.url()}) as opened:
        if kind is None:
            await opened.write([1])
        else:
            with pytest.raises(kind) as failed:
                await opened.write([1])
            assert type(failed.value) is kind
            assert str(failed.value) == f"POST {server.url()}: {status} {reason}"


async def test_a_failure_shows_at_most_300_bytes_of_the_reply_on_one_line(server: Peer):
    server.answers = [replies("a\r\n\tb " + "ü" * 400, status=500)]

    failed = await failure({"url": server.url()})

    shown = str(failed).partition("Error: ")[2]
    assert shown == "a b " + "ü" * 148
    assert len(shown.encode()) == 300


async def test_a_failure_does_not_show_what_the_server_sends_back_of_our_credentials(
    server: Peer,
):
    async def echoes(request: web.Request) -> web.Response:
        return web.Response(status=403, text=f"{request.headers['Authorization']} may not")

    server.answers = [echoes, echoes, echoes]
    literal = {"type": "bearer", "token": "literal"}

    texts = [
        str(await failure({"url": server.url(), "auth": BEARER}, TOKEN="s3cret")),
        str(await failure({"url": server.url(), "auth": literal})),
        str(await failure({"url": server.url(user="me:pw")})),
    ]

    assert [text.partition("Forbidden: ")[2] for text in texts] == [
        "Bearer ${TOKEN} may not",
        "Bearer *** may not",
        "Basic *** may not",
    ]


async def test_what_is_sent_as_a_credential_is_hidden_in_every_text_of_the_component(server: Peer):
    ctx = StubContext()
    HttpOutput.load({"url": server.url(user="me:letmein-letmein")}).open(ctx)
    HttpOutput.load({"url": server.url(), "auth": {"type": "bearer", "token": "literal"}}).open(ctx)
    basic = base64.b64encode(b"me:letmein-letmein").decode()

    assert ctx.redact(f"letmein-letmein {basic} literal {basic.rstrip('=')}") == "*** *** *** ***"


async def test_a_failure_shows_the_url_without_user_info(server: Peer):
    server.answers = [replies(status=404)]

    failed = await failure({"url": server.url("/in?a=b", user="me:pw")})

    assert str(failed) == f"POST {server.url('/in?a=b')}: 404 Not Found"


async def test_a_credential_that_spans_the_cut_is_not_shown_in_part(server: Peer):
    server.answers = [replies("x" * 295 + "s3cret-and-longer", status=403)]

    failed = await failure({"url": server.url(), "auth": BEARER}, TOKEN="s3cret-and-longer")

    assert "s3cre" not in str(failed)


async def test_a_failure_tells_the_status_when_its_reply_does_not_come(server: Peer):
    async def breaks_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=400, headers={"Content-Length": "1000"})
        await response.prepare(request)
        request.transport.abort()
        return response

    server.answers = [breaks_off]

    assert str(await failure({"url": server.url()})) == f"POST {server.url()}: 400 Bad Request"


async def test_a_server_that_is_not_there_is_unreachable(unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}/in"

    failed = await failure({"url": url.replace("//", "//me:pw@")})

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {url}: connection refused"


async def test_a_host_that_is_not_known_is_unreachable():
    failed = await failure({"url": "http://nowhere.invalid/in"})

    assert type(failed) is Unreachable
    assert str(failed) == "POST http://nowhere.invalid/in: the host name cannot be resolved"


async def hang_up(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def greet(reader, writer):
    writer.write(b"220 mail.example.org ready\r\n")
    writer.close()


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (hang_up, Unreachable, "the server closed the connection without an answer"),
        (greet, BatchFailed, "the reply is not HTTP"),
    ],
)
async def test_a_server_that_hangs_up_is_unreachable_and_one_of_something_else_fails_the_batch(
    answer, kind, told
):
    async with rude(answer) as url:
        failed = await failure({"url": url})

    assert type(failed) is kind
    assert str(failed) == f"POST {url}: {told}"


async def test_what_is_no_text_in_a_status_line_is_replaced():
    async def mutter(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 F\xffund\r\nLocation: /\xfe\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with rude(mutter) as url:
        failed = await failure({"url": url})

    assert str(failed) == f"POST {url}: 302 F?und: the server points to '/?'"


async def test_a_server_that_speaks_no_tls_is_unreachable(server: Peer):
    url = server.url().replace("http://", "https://")

    failed = await failure({"url": url})

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {url}: TLS: wrong version number"


async def test_a_connection_that_is_reset_is_unreachable():
    async def reset(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, LINGER_0)
        writer.close()

    async with rude(reset) as url:
        failed = await failure({"url": url})

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {url}: connection reset by peer"


@promise("http.output.twice")
async def test_a_request_that_takes_too_long_is_unreachable(server: Peer):
    hanging = asyncio.Event()

    async def hangs(_: web.Request) -> web.Response:
        await hanging.wait()
        return web.Response()

    server.answers = [hangs]

    failed = await failure({"url": server.url(), "timeout_seconds": 0.05})
    hanging.set()

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {server.url()}: no answer within 0.05 s"
    assert len(server.received) == 1
