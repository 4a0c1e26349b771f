"""The `http` output, against a real server."""

import asyncio
import base64
import contextlib
import gc
import html
import struct
from socket import SO_LINGER, SOL_SOCKET
from urllib.parse import quote

import pytest
import pytest_asyncio
from aiohttp import ClientOSError, ClientSession, web

from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpOutput, HttpSink
from tests.doubles import StubContext, refusals
from tests.peer import Peer, peer, replies

LINGER_0 = struct.pack("ii", 1, 0)  # closing sends a reset
BEARER = {"type": "bearer", "token": "${TOKEN}"}
HEADER = {"type": "header", "name": "X-Key", "value": "${KEY}"}


@pytest_asyncio.fixture
async def server():
    async with peer() as it:
        yield it


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


async def test_a_batch_is_one_request_with_an_array(server: Peer):
    async with sink({"url": server.url("/in?x=1")}) as opened:
        await opened.write([{"n": 1}, {"n": 2.0}])
        await opened.write([{"n": "ü"}])

    assert server.bodies() == [b'[{"n":1},{"n":2.0}]', '[{"n":"ü"}]'.encode()]
    assert {(each.method, each.path) for each in server.received} == {("POST", "/in?x=1")}
    assert server.received[0].headers["Content-Type"] == "application/json"
    assert server.received[0].headers["User-Agent"] == "headrace"
    assert "Authorization" not in server.received[0].headers


async def test_one_connection_is_used_again(server: Peer):
    server.answers = [replies(b"discarded " * 1000), replies(), replies(status=400)]

    async with sink({"url": server.url()}) as opened:
        for n in range(4):
            with contextlib.suppress(BatchFailed):
                await opened.write([n])

    assert len({each.port for each in server.received}) == 1
    assert len(server.received) == 4


async def test_a_long_reply_is_not_read_to_its_end(server: Peer):
    server.answers = [replies(b"x" * 3_000_000)]

    async with sink({"url": server.url()}) as opened:
        await opened.write([1])
        await opened.write([2])

    assert server.bodies() == [b"[1]", b"[2]"]


async def test_a_reply_that_breaks_off_after_its_status_is_a_success(server: Peer):
    async def breaks_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"some")
        request.transport.abort()
        return response

    server.answers = [breaks_off]

    async with sink({"url": server.url()}) as opened:
        await opened.write([1])

    assert server.bodies() == [b"[1]"]


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH"])
async def test_the_verb_is_honoured(server: Peer, verb):
    async with sink({"url": server.url(), "verb": verb}) as opened:
        await opened.write([1])

    assert server.received[0].method == verb


async def test_a_message_is_one_request_and_the_first_failure_ends_the_batch(server: Peer):
    server.answers = [replies(), replies(status=400, body="no good")]
    options = {"url": server.url(), "body": "message"}

    failed = await failure(options, [{"n": 1}, 2, "three"])

    assert server.bodies() == [b'{"n":1}', b"2"]
    assert str(failed) == f"POST {server.url()}: 400 Bad Request: no good"


async def test_a_bearer_token_is_sent(server: Peer):
    async with sink({"url": server.url(), "auth": BEARER}, TOKEN="s3cret") as opened:
        await opened.write([1])

    assert server.received[0].headers["Authorization"] == "Bearer s3cret"


async def test_a_header_is_sent_under_its_name(server: Peer):
    async with sink({"url": server.url(), "auth": HEADER}, KEY="k 1") as opened:
        await opened.write([1])

    assert server.received[0].headers["X-Key"] == "k 1"


async def test_a_configured_header_replaces_one_of_ours(server: Peer):
    auth = {"type": "header", "name": "user-agent", "value": "me"}

    async with sink({"url": server.url(), "auth": auth}) as opened:
        await opened.write([1])

    assert server.received[0].headers.getall("User-Agent") == ["me"]


async def test_user_info_is_sent_as_basic(server: Peer):
    async with sink({"url": server.url(user="me:p%40ss")}) as opened:
        await opened.write([1])

    expected = "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert server.received[0].headers["Authorization"] == expected


async def test_user_info_goes_with_a_header_of_another_name(server: Peer):
    async with sink({"url": server.url(user="me:pw"), "auth": HEADER}, KEY="k") as opened:
        await opened.write([1])

    assert {"Authorization", "X-Key"} <= set(server.received[0].headers)


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


ODD_URLS = [
    "/?{said}",
    "http://other.invalid/{said}",
    "http://{said}@other.invalid/",
    "{said}",
    "http://[{said}",
    "{origin}[::1]é{said}@",
    "{origin}:{said}/",
]


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("location", ODD_URLS)
async def test_a_redirect_shows_no_credential_whatever_url_it_names(
    server: Peer, location: str, status: int
):
    user, password, token = "me", "pa@ss/word&more", "written+out,not/referred-to@all"
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    literal = {"url": server.url(), "auth": {"type": "bearer", "token": token}}
    signed = {"url": server.url(user=f"{user}:{quote(password, safe='')}")}
    for options, said in (
        (literal, token),
        (literal, html.escape(token)),
        (signed, password),
        (signed, quote(password, safe="")),
        (signed, html.escape(password)),
        (signed, basic),
        (signed, basic.rstrip("=")),
    ):
        there = location.format(said=said, origin=server.origin)
        server.answers = [
            replies(status=status, headers={"Location": there}),
            *[replies(status=307, headers={"Location": there})] * 20,
        ]

        failed = await failure(options)

        assert type(failed) is BatchFailed
        assert said not in str(failed)
        assert "word" not in str(failed)
        assert len(str(failed)) < 500
        server.answers = []


async def test_a_server_that_hangs_up_on_what_it_has_redirected_shows_no_credential(
    server: Peer, monkeypatch: pytest.MonkeyPatch
):
    password, token = "pass&word-of-a-url", "written+out"
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    said = "&".join(quote(each) for each in (password, basic, token))
    request = ClientSession.request

    def hung_up_on(self, verb, url, **options):
        if url.query_string:
            # What the library raises when the connection is gone before the body is written.
            raise ClientOSError(None, f"Can not write request body for {url}")
        return request(self, verb, url, **options)

    monkeypatch.setattr(ClientSession, "request", hung_up_on)
    server.answers = [replies(status=307, headers={"Location": f"/?{said}"}) for _ in range(2)]

    of_url = await failure({"url": server.url(user=f"me:{quote(password)}")})
    of_token = await failure({"url": server.url(), "auth": {"type": "bearer", "token": token}})

    expected = "the server closed the connection before it had the request"
    assert str(of_url) == str(of_token) == f"POST {server.url()}: {expected}"
    assert type(of_url) is type(of_token) is Unreachable


async def test_a_redirect_to_what_cannot_be_requested_is_a_failure():
    over = asyncio.Event()

    async def points_there(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"[1]"):
                writer.write(b"HTTP/1.1 307 There\r\nLocation: \x7fhttp://h:1#x\r\n")
                writer.write(b"Content-Length: 0\r\n\r\n")
        writer.close()
        over.set()

    async with rude(points_there) as url:
        failed = await failure({"url": url})
        await over.wait()

    assert type(failed) is BatchFailed
    assert str(failed).startswith(f"POST {url}: cannot be requested: Forbidden control character")


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


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_that_keeps_the_method_is_followed_within_the_server(server: Peer, status):
    server.answers = [replies(status=status, headers={"Location": "/in/?there"})]

    async with sink({"url": server.url("/in"), "auth": BEARER}, TOKEN="s3cret") as opened:
        await opened.write([{"n": 1}])

    assert [(each.method, each.path, each.body) for each in server.received] == [
        ("POST", "/in", b'[{"n":1}]'),
        ("POST", "/in/?there", b'[{"n":1}]'),
    ]
    assert server.received[1].headers["Authorization"] == "Bearer s3cret"


async def test_user_info_in_a_redirect_is_not_ours(server: Peer):
    server.answers = [replies(status=308, headers={"Location": server.url("/b", user="x:y")})]

    async with sink({"url": server.url("/a"), "auth": BEARER}, TOKEN="s3cret") as opened:
        await opened.write([1])

    assert server.received[1].headers.getall("Authorization") == ["Bearer s3cret"]


@pytest.mark.parametrize(
    ("status", "reason"), [(301, "Moved Permanently"), (302, "Found"), (303, "See Other")]
)
async def test_a_redirect_that_would_drop_the_batch_is_a_failure(server: Peer, status, reason):
    server.answers = [replies(status=status, headers={"Location": "/there"})]

    failed = await failure({"url": server.url()})

    assert type(failed) is BatchFailed
    assert str(failed) == f"POST {server.url()}: {status} {reason}: the server points to '/there'"
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "location", ["https://127.0.0.1:{port}/in", "http://other.invalid/", "ftp://x/", "http://["]
)
async def test_no_batch_and_no_credential_follows_a_redirect_to_another_server(
    server: Peer, location
):
    location = location.format(port=server.origin.rpartition(":")[2])
    server.answers = [replies(status=308, headers={"Location": location})]

    failed = await failure({"url": server.url(), "auth": BEARER}, TOKEN="s3cret")

    assert str(failed) == (
        f"POST {server.url()}: 308 Permanent Redirect: the server points to '{location}'"
    )
    assert len(server.received) == 1


async def test_redirects_without_end_are_a_failure(server: Peer):
    server.answers = [replies(status=307, headers={"Location": "/in"})] * 50

    failed = await failure({"url": server.url()})

    assert str(failed) == f"POST {server.url()}: redirected more than 10 times"


async def test_a_server_that_is_not_there_is_unreachable(unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}/in"

    failed = await failure({"url": url.replace("//", "//me:pw@")})

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {url}: connection refused"


async def test_a_host_that_is_not_known_is_unreachable():
    failed = await failure({"url": "http://nowhere.invalid/in"})

    assert type(failed) is Unreachable
    assert str(failed) == "POST http://nowhere.invalid/in: the host name cannot be resolved"


@contextlib.asynccontextmanager
async def rude(conversation):
    """Run a server that is none of HTTP; give its url."""
    server = await asyncio.start_server(conversation, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"


async def test_a_server_that_hangs_up_is_unreachable():
    async def hang_up(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with rude(hang_up) as url:
        failed = await failure({"url": url})

    assert type(failed) is Unreachable
    assert str(failed) == f"POST {url}: the server closed the connection without an answer"


async def test_a_server_that_does_not_speak_http_fails_the_batch():
    async def greet(reader, writer):
        writer.write(b"220 mail.example.org ready\r\n")
        writer.close()

    async with rude(greet) as url:
        failed = await failure({"url": url})

    assert type(failed) is BatchFailed
    assert str(failed) == f"POST {url}: the reply is not HTTP"


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


async def test_the_next_batch_is_sent_after_a_failure(server: Peer):
    server.answers = [replies(status=503)]

    async with sink({"url": server.url()}) as opened:
        with pytest.raises(Unreachable):
            await opened.write([1])
        await opened.write([2])

    assert server.bodies() == [b"[1]", b"[2]"]


async def test_cookies_of_a_reply_are_not_kept(server: Peer):
    server.answers = [replies(headers={"Set-Cookie": "a=1"})]

    async with sink({"url": server.url()}) as opened:
        await opened.write([1])
        await opened.write([2])

    assert "Cookie" not in server.received[1].headers


@pytest.mark.long
async def test_finishing_closes_the_session_and_a_run_without_batches_has_none(server: Peer):
    async with sink({"url": server.url()}) as opened:
        await opened.write([1])
    async with sink({"url": server.url()}):
        pass

    gc.collect()  # an unclosed session would complain, and a warning is an error here


@pytest.mark.parametrize(
    ("auth", "secrets", "fault"),
    [
        (
            BEARER,
            {"TOKEN": ""},
            Fault("empty-credential", "'token' resolves to nothing", path=("auth", "token")),
        ),
        (
            HEADER,
            {"KEY": "a\r\nX-Other: b"},
            Fault(
                "illegal-header",
                "'value' resolves to what no header can carry",
                expected="no line breaks or control characters, and no blanks around it",
                path=("auth", "value"),
            ),
        ),
    ],
)
def test_a_credential_that_cannot_be_sent_is_refused_at_build(auth, secrets, fault):
    config = HttpOutput.load({"url": "http://127.0.0.1/", "auth": auth})

    with pytest.raises(BuildRefused) as refused:
        config.open(StubContext(secrets=secrets))

    assert refused.value.fault == fault


URL = "http://sink.example/in"
A_TIMEOUT = "timeout_seconds: expected a number above 0 and of at most 86400"


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "url: this key is required"),
        (
            {"url": "/in"},
            'url: "/in" is not an absolute http or https url: '
            "it does not begin with http:// or https://",
        ),
        ({"url": URL, "verb": "GET"}, "verb: a GET request has no body to put the messages in"),
        (
            {"url": URL, "verb": "DELETE"},
            "verb: a DELETE request has no body to put the messages in",
        ),
        ({"url": URL, "verb": "post"}, 'verb: expected one of POST, PUT, PATCH, found "post"'),
        ({"url": URL, "timeout_seconds": 0}, f"{A_TIMEOUT}, found 0"),
        ({"url": URL, "timeout_seconds": -1}, f"{A_TIMEOUT}, found -1"),
        ({"url": URL, "timeout_seconds": "30"}, f'{A_TIMEOUT}, found "30"'),
        ({"url": URL, "body": "msg"}, 'body: expected one of batch, message, found "msg"'),
        (
            {"url": URL, "auth": {**HEADER, "name": "X:Key"}},
            'auth.name: "X:Key" cannot be the name of a header',
        ),
        *(
            (
                {"url": URL, "auth": {**HEADER, "name": name}},
                f"auth.name: every request already has a '{name}' header",
            )
            for name in ("connection", "content-length", "content-type", "expect", "host")
        ),
        (
            {"url": "http://me:pw@sink.example/in", "auth": BEARER},
            "auth: 'auth' and the user info in 'url' would both be the Authorization header",
        ),
        (
            {"url": "http://me@sink.example/in", "auth": {**HEADER, "name": "AUTHORIZATION"}},
            "auth: 'auth' and the user info in 'url' would both be the Authorization header",
        ),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(HttpOutput, options) == [refusal]


def test_a_config_is_echoed_with_its_templates_and_without_user_info():
    document = {"url": "http://sink.example/in", "auth": HEADER, "timeout_seconds": 2.5}
    signed = HttpOutput.load({"url": "http://me:pw@sink.example/in"})

    assert HttpOutput.load(document).dump() == {"type": "http", **document}
    assert signed.dump() == {"type": "http", "url": "http://***@sink.example/in"}


def test_the_shown_config_has_neither():
    config = HttpOutput.load({"url": "http://me:pw@sink.example/in", "auth": HEADER})

    assert "pw" not in repr(config)
