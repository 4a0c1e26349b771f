"""The `http` transform, against a real server."""

import asyncio

import pytest
import pytest_asyncio
from aiohttp import web
from reactivex.subject import Subject

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.jsontext import Decoding, encode
from headrace.operators.httptransform import HttpTransform
from tests.covered import Covered
from tests.doubles import StubContext, refusals
from tests.http_sides import CLASSES
from tests.peer import Peer, peer, replies
from tests.promises import promise
from tests.virtual import virtual


@pytest_asyncio.fixture
async def server():
    async with peer() as it:
        yield it


async def handed_on(
    options: dict, *batches: list, ctx: StubContext | None = None, **limits: int
) -> tuple[list, list[str]]:
    """Return the batches that come out when ``batches`` go in, and what failed."""
    ctx, window, out = ctx or StubContext(), Window(), []
    ended = asyncio.get_running_loop().create_future()

    def take(delivery: Delivery) -> None:
        out.append(delivery.batch)
        delivery.done()

    source = Subject()
    operator = HttpTransform.load({"verb": "POST", **options}).operator(ctx, **limits)
    operator(source).subscribe(take, on_completed=lambda: ended.set_result(None))
    for batch in batches:
        window.take()
        source.on_next(Delivery(batch, window))
    source.on_completed()
    await ended
    await ctx.finish()
    assert window.used == 0
    return out, ctx.failures


async def test_the_batch_is_replaced_by_the_array_that_the_server_answers(server: Peer):
    server.answers = [replies('[{"n": 1, "ok": true}, "more"]'), replies("[2.0]")]

    out, failures = await handed_on({"url": server.url()}, [{"n": 1}], [2])

    assert out == [[{"n": 1, "ok": True}, "more"], [2.0]]
    assert failures == []
    assert server.bodies() == [b'[{"n":1}]', b"[2]"]
    assert server.received[0].headers["Content-Type"] == "application/json"


async def test_a_reply_is_decoded_as_the_pipeline_does_it(server: Peer):
    replied = HttpTransform.load({"url": server.url(), "verb": "POST"})
    decoding = Decoding()
    decoding.keep_digits(keeps=True)

    assert encode(replied.batch_of(b"[1.10]", StubContext(decoding=decoding))) == b"[1.10]"
    assert encode(replied.batch_of(b"[1.10]", StubContext())) == b"[1.1]"


@pytest.mark.parametrize("verb", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_verb_that_is_not_honoured_is_warned_of(verb):
    [said] = HttpTransform.load({"url": "http://there/", "verb": verb}).examine(CheckContext())

    assert (said.code, said.severity, said.path) == ("not-honoured", "warning", ("verb",))
    assert said.message == f"'verb: {verb}' is not honoured: every batch is sent as a POST"


def test_the_verb_of_every_request_is_not_warned_of():
    post = HttpTransform.load({"url": "http://there/", "verb": "POST"})

    assert [*post.examine(CheckContext())] == []


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_every_request_is_a_post_whatever_the_verb(server: Peer, verb):
    server.answers = [replies("[1]")]

    await handed_on({"url": server.url(), "verb": verb}, [1])

    assert [each.method for each in server.received] == ["POST"]


async def test_batches_are_posted_one_at_a_time_and_in_order(server: Peer):
    at_once = []

    async def answers(request: web.Request) -> web.Response:
        at_once.append(len(server.received))
        await asyncio.sleep(0)
        at_once.append(len(server.received))
        return web.Response(body=await request.read())

    server.answers = [answers] * 3

    out, _ = await handed_on({"url": server.url()}, [1], [2], [3])

    assert out == [[1], [2], [3]]
    assert at_once == [1, 1, 2, 2, 3, 3]


async def test_an_empty_reply_gives_no_batch_and_an_empty_batch_is_not_posted(server: Peer):
    server.answers = [replies("[]"), replies("[1]")]

    out, failures = await handed_on({"url": server.url()}, [], ["a"], ["b"])

    assert out == [[1]]
    assert failures == []
    assert server.bodies() == [b'["a"]', b'["b"]']


@pytest.mark.parametrize("reply", ['{"error": "down"}', "null", "7", '"[]"'])
async def test_a_reply_that_is_not_an_array_fails_the_batch(server: Peer, reply):
    server.answers = [replies(reply), replies("[1]")]

    out, failures = await handed_on({"url": server.url()}, ["a"], ["b"])

    assert out == [[1]]
    assert failures == [f"POST {server.url()}: the reply is not an array"]


@pytest.mark.parametrize("reply", ["", "<html>", "[1", "[NaN]"])
async def test_a_reply_that_is_not_json_fails_the_batch(server: Peer, reply):
    server.answers = [replies(reply)]
    ctx = StubContext()

    out, failures = await handed_on({"url": server.url()}, ["a"], ctx=ctx)

    assert (out, failures) == ([], [f"POST {server.url()}: the reply is not JSON"])
    [said] = ctx.warnings
    assert said.startswith(f"{failures[0]}: ")


async def test_an_outage_page_that_happens_to_be_json_does_not_replace_the_data(server: Peer):
    server.answers = [replies('["sorry"]', status=503)]

    out, failures = await handed_on({"url": server.url()}, ["a"])

    assert out == []
    assert failures == [f'POST {server.url()}: 503 Service Unavailable: ["sorry"]']


async def test_user_info_is_sent_and_not_shown(server: Peer):
    server.answers = [replies("no", status=401)]

    _, failures = await handed_on({"url": server.url(user="me:pw")}, ["a"])

    assert failures == [f"POST {server.url()}: 401 Unauthorized: no"]
    assert server.received[0].headers["Authorization"].startswith("Basic ")


async def test_a_reply_beyond_the_bound_fails_the_batch(server: Peer):
    server.answers = [replies("[111111111]"), replies("[11111111]")]

    out, failures = await handed_on({"url": server.url()}, ["a"], ["b"], most_reply_bytes=10)

    assert out == [[11111111]]
    assert failures == [f"POST {server.url()}: the reply is longer than 10 bytes"]


async def test_a_reply_that_breaks_off_fails_the_batch(server: Peer):
    async def breaks_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"[1, 2")
        request.transport.abort()
        return response

    server.answers = [breaks_off]

    out, failures = await handed_on({"url": server.url()}, ["a"])

    assert out == []
    assert failures == [f"POST {server.url()}: the reply broke off"]


async def test_a_server_that_is_not_there_fails_the_batch(unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}/"

    out, failures = await handed_on({"url": url}, ["a"])

    assert (out, failures) == ([], [f"POST {url}: connection refused"])


@virtual(patience=0.1)
async def test_a_server_that_hangs_fails_the_batch_after_30_seconds():
    hanging = asyncio.Event()

    async def hangs(_: web.Request) -> web.Response:
        await hanging.wait()
        return web.Response()

    async with peer() as server:
        server.answers = [hangs, replies("[2]")]
        url = server.url()
        ctx = StubContext()
        out, failures = await handed_on({"url": url}, [1], [2], ctx=ctx)
        hanging.set()

    assert out == [[2]]
    assert ctx.classes == ["unclear"]
    assert failures == [f"POST {url}: no answer within 30 s"]


# Classes of failures


@promise(
    "http.transform.fails.later",
    "http.transform.fails.broken",
    "http.transform.fails.not_let_in",
    "http.transform.fails.nothing_there",
    "http.transform.fails.redirected",
    "http.transform.fails.refused",
)
async def test_an_answer_has_the_class_of_its_status(server: Peer):
    server.answers = [replies(status=status) for status, _ in CLASSES]
    ctx = StubContext()

    await handed_on({"url": server.url()}, *[[each] for each, _ in CLASSES], ctx=ctx)

    assert ctx.classes == [failure for _, failure in CLASSES]


@promise("http.transform.fails.no_array")
async def test_a_reply_that_is_no_array_is_invalid(server: Peer):
    server.answers = [replies("{}"), replies("["), replies("[111111111]")]
    ctx = StubContext()

    await handed_on({"url": server.url()}, [1], [2], [3], ctx=ctx, most_reply_bytes=10)

    assert ctx.classes == ["invalid"] * 3


@promise("http.transform.fails.no_answer", "http.transform.fails.stranger")
async def test_nobody_who_answers_is_unavailable_and_somebody_else_misconfigured(server: Peer):
    ctx, other = StubContext(), StubContext()

    await handed_on({"url": "http://nowhere.invalid/"}, [1], ctx=ctx)
    await handed_on({"url": server.url().replace("http:", "https:")}, [1], ctx=other)

    assert (ctx.classes, other.classes) == (["unavailable"], ["misconfigured"])


@promise("http.transform.fails.cut_off")
async def test_an_answer_that_does_not_come_or_breaks_off_is_unclear(server: Peer):
    async def hangs_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def breaks_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"[1, 2")
        assert request.transport is not None
        request.transport.abort()
        return response

    server.answers = [hangs_up, breaks_off]
    ctx = StubContext()

    await handed_on({"url": server.url()}, [1], [2], ctx=ctx)

    assert ctx.classes == ["unclear"] * 2


def test_it_may_hand_on_more_than_it_was_given():
    assert HttpTransform.is_gathering


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            {"url": "ftp://there/", "verb": "POST"},
            'url: "ftp://there/" is not an absolute http or https url: '
            "it does not begin with http:// or https://",
        ),
        ({"url": "http://there/"}, "verb: this key is required"),
        ({"verb": "GET"}, "url: this key is required"),
        (
            {"url": "http://there/", "verb": "HEAD"},
            'verb: expected one of GET, POST, PUT, PATCH, DELETE, found "HEAD"',
        ),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(HttpTransform, options) == [refusal]


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        "{type: http, url: 'http://127.0.0.1:1', verb: POST}",
        "a: {1s: {}, 2s: {}}",
        ("no batch was ever answered", "no batch ever failed"),
    )
]
