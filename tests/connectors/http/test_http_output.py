"""The `http` output, against a real server."""

import base64
import contextlib
import gc

import pytest
from aiohttp import web

from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.http import HttpOutput
from tests.doubles import StubContext, refusals
from tests.http_sides import BEARER, HEADER, failure, no_header_can_carry, resolves_to_nothing, sink
from tests.peer import Peer, replies
from tests.promises import promise


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


@promise("http.output.away", "http.output.twice")
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
        (BEARER, {"TOKEN": ""}, resolves_to_nothing("token")),
        (HEADER, {"KEY": "a\r\nX-Other: b"}, no_header_can_carry("value")),
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


def test_halves_are_of_a_batch():
    document = {"url": "http://h/", "bisect": True}

    assert refusals(HttpOutput, document) == []
    assert refusals(HttpOutput, {**document, "body": "message"}) == [
        "bisect: a request has one message, of which there are no halves"
    ]
    assert refusals(HttpOutput, {"url": "http://h/", "bisect": False, "body": "message"}) == []
