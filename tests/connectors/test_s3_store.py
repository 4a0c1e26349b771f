"""The `s3` output on a real object store, and on servers that answer as stores do when they say no."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused, HeadraceError, Unreachable
from headrace.connectors.network import refusal
from headrace.connectors.s3 import S3Connection
from headrace.connectors.s3.connection import PIECE_BYTES, Limits, flowing
from headrace.connectors.s3.objectpart import Content, Declined, ObjectPart, Taken
from headrace.connectors.s3.objectstore import S3Store
from tests.clients import PATIENCE
from tests.doubles import StubContext
from tests.peer import Answer, Peer, peer, replies
from tests.s3_sides import Wire, asking, context, objects, sink, started
from tests.services.authority import Authority
from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.services.server import free_port
from tests.stopwatch import Stopwatch
from tests.virtual import virtual

MIB = 1024 * 1024
SAID = refusal.MOST_SAID


def part(body: bytes = b"1\n", key: str = "p/2026-03-01T08-00-00Z-000001.ndjson") -> ObjectPart:
    """Return a part that is ready."""
    return ObjectPart(key, "application/x-ndjson", 1, len(body), Content(body, "none"))


@asynccontextmanager
async def reached(ctx: StubContext, limits: Limits | None = None) -> AsyncIterator[S3Store]:
    """Give the store of a context, asked for its bucket."""
    made = S3Store(ctx.connection(S3Connection, "lake").account(ctx), ctx, limits)
    async with asyncio.timeout(PATIENCE):
        await made.open("p/")
        try:
            yield made
        finally:
            await made.close()


async def said(ctx: StubContext) -> HeadraceError:
    """Return why an output does not start, which takes no longer than it may."""
    watch = Stopwatch()
    with pytest.raises(HeadraceError) as cause:
        async with asyncio.timeout(PATIENCE):
            await sink(ctx).start()
    assert watch.seconds < 6
    return cause.value


def fault(
    status: int, code: str, message: str = "a message", more: str = "", **headers: str
) -> Answer:
    """Return an answer that says no, as stores do."""
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    return replies(body, status, {"Content-Type": "application/xml", **headers})


LISTED = replies(
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>plant</Name>'
    "<KeyCount>0</KeyCount><MaxKeys>1</MaxKeys></ListBucketResult>"
)
NOT_THERE = replies(status=404)


def told(token: str) -> Answer:
    """Return the answer about an object that is there."""
    return replies(headers={"x-amz-meta-headrace-part": token})


def asked(it: Peer) -> list[str]:
    """Return what a server was asked, in order, without what stands behind a question mark."""
    return [f"{each.method} {each.path.partition('?')[0]}" for each in it.received]


# What lands


async def test_an_object_has_its_name_its_bytes_and_its_type(object_store: S3):
    ctx = context(object_store)
    options = {"prefix": "types/ü +", "compression": "gzip", "partition": "year=%Y"}

    async with started(sink(ctx, **options)) as it:
        await it.write([{"n": 1}, {"n": 2}])

    [(key, body)] = objects(object_store, "types").items()
    assert key.startswith("types/ü +/year=20")
    assert key.endswith("Z-000001.ndjson.gz")
    assert gzip.decompress(body) == b'{"n":1}\n{"n":2}\n'
    async with asking(object_store) as client:
        found = await client.head_object(Bucket=BUCKET, Key=key)
    assert found["ContentType"] == "application/gzip"
    assert "ContentEncoding" not in found
    assert (ctx.failures, ctx.warnings) == ([], [])


async def test_an_object_that_is_there_is_not_overwritten(object_store: S3):
    ctx = context(object_store)
    other, ours = part(b"other\n", "p/taken-1"), part(b"ours\n", "p/taken-1")

    async with reached(ctx) as store:
        await store.send(other)
        with pytest.raises(Taken):
            await store.send(ours)

    assert objects(object_store, "p")["p/taken-1"] == b"other\n"


async def test_a_part_that_is_there_already_is_done_and_not_sent_again(object_store: S3):
    ctx, ours = context(object_store), part(key="p/again-1")

    async with reached(ctx) as store:
        await store.send(ours)
        before = (object_store.objects / ours.key).stat().st_mtime_ns
        await store.send(ours)

    assert (object_store.objects / ours.key).stat().st_mtime_ns == before


async def test_a_large_part_goes_in_pieces_and_is_whole(object_store: S3):
    body = os.urandom(16 * MIB + 1)

    async with reached(context(object_store)) as store:
        await store.send(part(body, "p/large"))
        await store.send(part(body[1:], "p/not-so-large"))

    assert (object_store.objects / "p" / "large").read_bytes() == body
    assert (object_store.objects / "p" / "not-so-large").read_bytes() == body[1:]
    async with asking(object_store) as client:
        large = await client.head_object(Bucket=BUCKET, Key="p/large")
        assert large["ContentType"] == "application/x-ndjson"
        assert await uploads(client) == []


async def uploads(client: Any) -> list[str]:
    """Return the keys of uploads in pieces that were begun and not ended."""
    listed = await client.list_multipart_uploads(Bucket=BUCKET)
    return [each["Key"] for each in listed.get("Uploads", [])]


@pytest.mark.long
async def test_an_upload_in_pieces_that_breaks_is_given_up_before_the_next_try(object_store: S3):
    body = os.urandom(20 * MIB)
    large = part(body, "p/broken")
    async with Wire(object_store) as wire, reached(context(wire.url)) as store:
        wire.limit(12 * MIB, cuts=True)
        with pytest.raises(Unreachable):
            await store.send(large)
        async with asking(object_store) as client:
            between = await uploads(client)
        wire.mend()
        await store.send(large)

    assert (object_store.objects / large.key).read_bytes() == body
    async with asking(object_store) as client:
        # The first could not be given up at once: nobody could be asked.
        assert (between, await uploads(client)) == ([large.key], [])


@pytest.mark.long
async def test_an_upload_in_pieces_that_is_cancelled_leaves_nothing(object_store: S3):
    async with Wire(object_store) as wire, reached(context(wire.url)) as store:
        large = part(os.urandom(24 * MIB), "p/cancelled")
        wire.limit(4 * MIB, cuts=False)
        sending = asyncio.ensure_future(store.send(large))
        await wire.reached.wait()
        async with asking(object_store) as client:
            during = await uploads(client)
        sending.cancel()
        wire.mend()
        with pytest.raises(asyncio.CancelledError):
            await sending

        async with asking(object_store) as client:
            assert (during, await uploads(client)) == ([large.key], [])
    assert not (object_store.objects / large.key).exists()


async def test_a_key_that_may_not_give_uploads_up_uploads_all_the_same():
    pieces: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        is_first = not pieces
        if request.method == "PUT":
            pieces.append(int(request.query["partNumber"]))
            return web.Response(status=500 if is_first else 200, headers={"ETag": '"e"'})
        if request.method == "POST" and "uploads" in request.query:
            return web.Response(text="<R><UploadId>u1</UploadId></R>")
        if request.method == "POST":
            return web.Response(text='<R><ETag>"e"</ETag></R>')
        return web.Response(status=404 if request.method == "HEAD" else 403)

    async with peer() as it:
        ctx, large = context(it.origin), part(bytes(16 * MIB + 1))
        it.answers = [LISTED, *[answer] * 20]
        async with reached(ctx) as store:
            with pytest.raises(Unreachable):
                await store.send(large)
            await store.send(large)

    assert pieces.count(3) >= 1
    assert [verb for verb in asked(it) if "DELETE" in verb]
    assert ctx.warnings == [
        "this key may not give uploads up: what is there of those that failed stays in the bucket"
    ]


# Stores that say no


@pytest.mark.parametrize(
    ("wrong", "said_by_the_store"),
    [
        (
            {"connection": {"bucket": "missing"}},
            "bucket 'missing' at {} says 'NoSuchBucket: The specified bucket does not exist'",
        ),
        (
            {"secrets": {"KEY": "AKIDSOMEBODY"}},
            "bucket 'plant' at {} says 'InvalidAccessKeyId: The Access Key Id you provided does not"
            " exist in our records.'",
        ),
        (
            {"secrets": {"SECRET": "not-the-secret"}},
            "bucket 'plant' at {} says 'SignatureDoesNotMatch: The request signature we calculated"
            " does not match the signature you provided. Check your key and signing method.'",
        ),
    ],
)
async def test_a_wrong_bucket_key_or_secret_refuses_the_pipeline(
    object_store: S3, wrong, said_by_the_store
):
    cause = await said(context(object_store, **wrong))

    assert isinstance(cause, BuildRefused)
    assert cause.fault.code == "turned-away"
    assert cause.fault.path == ("connection",)
    assert str(cause) == said_by_the_store.format(object_store.address)


async def test_a_store_that_is_not_there_is_tried_again():
    port = free_port()

    cause = await said(context(f"http://127.0.0.1:{port}"))

    assert isinstance(cause, Unreachable)
    assert str(cause) == f"bucket 'plant' at 127.0.0.1:{port} does not answer: connection refused"


async def test_a_host_that_nobody_knows_is_tried_again():
    cause = await said(context("https://store.invalid"))

    assert isinstance(cause, Unreachable)
    assert str(cause) == (
        "bucket 'plant' at store.invalid does not answer: the host name cannot be resolved"
    )


async def test_without_an_endpoint_the_store_is_that_of_the_region():
    ctx = context("http://127.0.0.1:1", connection={"endpoint": None, "region": "eu-central-1"})
    account = ctx.connection(S3Connection, "lake").account(ctx)
    made = S3Store(account, ctx)

    await made._connect()
    where = made._client.meta.endpoint_url
    await made.close()

    assert where == "https://s3.eu-central-1.amazonaws.com"


async def test_tls_is_made_with_the_authority_of_the_connection(
    authority: Authority, tmp_path: Path
):
    stranger = Authority(tmp_path / "stranger")

    def trusting(it: Authority) -> StubContext:
        return context(server, connection={"ca_file": str(it.ca_file)})

    with S3(tmp_path / "s3", tls=authority) as server:
        async with started(sink(trusting(authority))) as it:
            await it.write([1])
        untrusted = await said(trusting(stranger))
        unknown = await said(context(server))
        plain = await said(context(f"http://{server.address}"))

    assert list(objects(server).values()) == [b"1\n"]
    assert str(untrusted) == (
        f"the certificate of {server.address} is not trusted: unable to get local issuer certificate"
    )
    assert isinstance(untrusted, BuildRefused)
    assert isinstance(unknown, BuildRefused)
    assert str(plain) == f"{server.address} speaks TLS, and the connection does not"
    assert isinstance(plain, BuildRefused)


async def test_a_store_without_tls_is_told_apart(object_store: S3):
    cause = await said(context(f"https://{object_store.address}"))

    assert isinstance(cause, BuildRefused)
    assert str(cause) == f"{object_store.address} does not speak TLS"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (replies(status=204), "bucket 'plant' at {} answers, and not as S3 does"),
        (
            replies(b"x" * (Limits().answer_bytes + 1)),
            "bucket 'plant' at {} answers, and not as S3 does",
        ),
        (
            replies(b"x" * (Limits().answer_bytes + 1), status=500),
            "bucket 'plant' at {} answers, and not as S3 does",
        ),
        (replies(status=404), "bucket 'plant' at {} says '404: Not Found'"),
        (
            replies("<html>", 405, {"Content-Type": "text/html"}),
            "bucket 'plant' at {} answers, and not as S3 does (405)",
        ),
    ],
)
async def test_what_no_other_try_would_change_refuses_the_pipeline(answer, words):
    async with peer() as it:
        it.answers = [answer] * 30  # of which a client that follows has many

        cause = await said(context(it.origin))

    assert isinstance(cause, BuildRefused)
    assert str(cause) == words.format(it.origin.removeprefix("http://"))


async def test_what_is_no_http_refuses_the_pipeline():
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"220 mail.example.org ESMTP\r\n")
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        cause = await said(context(f"http://{host}:{port}"))

    assert isinstance(cause, BuildRefused)
    assert str(cause) == f"bucket 'plant' at {host}:{port} answers, and not as S3 does"


async def test_an_answer_without_an_end_is_read_no_further_than_stores_answer():
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        with suppress(ConnectionError):
            while sent < 64 * MIB:
                await response.write(bytes(MIB))
                sent += MIB
        return response

    async with peer() as it:
        it.answers = [endless]
        cause = await said(context(it.origin))

    assert isinstance(cause, BuildRefused)
    assert sent < 32 * MIB  # what lay in the buffers of both sides is more than what was read


@pytest.mark.parametrize("length", [SAID - 2, SAID - 10, SAID - len(SECRET) - 25])
async def test_a_secret_that_a_store_repeats_is_in_no_text_not_even_half_of_it(length: int):
    message = "y" * length + SECRET + " is wrong"
    async with peer() as it:
        ctx = context(it.origin)
        it.answers = [fault(400, "Odd", message)]
        at_start = str(await said(ctx))
        it.answers = [LISTED, NOT_THERE, fault(503, "SlowDown", message)]
        async with reached(ctx) as store:
            with pytest.raises(Unreachable) as cause:
                await store.send(part())

    for told in (at_start, str(cause.value)):
        assert "says '" in told
        assert len(told) < SAID + 100
        assert SECRET[:5] not in told


@pytest.mark.parametrize(
    "answer",
    [
        fault(503, "SlowDown", "Please reduce your request rate."),
        fault(500, "InternalError"),
        fault(403, "RequestTimeTooSkewed"),
        replies(status=502),
        replies("<html>a page", headers={"Content-Type": "text/html"}),
    ],
)
async def test_what_is_another_answer_in_a_while_is_tried_again(answer):
    async with peer() as it:
        it.answers = [answer]

        assert isinstance(await said(context(it.origin)), Unreachable)


async def test_a_key_that_may_only_write_is_let_through_with_a_warning():
    async with peer() as it:
        ctx = context(it.origin)
        it.answers = [fault(403, "AccessDenied"), replies(status=403)]
        async with reached(ctx) as store:
            await store.send(part())

    assert asked(it) == [f"GET /{BUCKET}"] + [
        f"{verb} /{BUCKET}/p/2026-03-01T08-00-00Z-000001.ndjson" for verb in ("HEAD", "PUT", "HEAD")
    ]
    assert ctx.warnings == [
        f"bucket 'plant' at {it.origin.removeprefix('http://')} may not be listed by this key"
        " ('AccessDenied'): whether it can be written to shows with the first part, and a part whose"
        " name is taken gets another one"
    ]


# While it runs


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            fault(503, "SlowDown", "Please reduce your request rate."),
            "says 'SlowDown: Please reduce your request rate.'",
        ),
        (fault(403, "InvalidAccessKeyId"), "says 'InvalidAccessKeyId: a message'"),
        (fault(404, "NoSuchBucket"), "says 'NoSuchBucket: a message'"),
        (replies("<html>", status=502), "says '502: Bad Gateway'"),
    ],
)
async def test_whatever_a_store_says_later_the_part_is_tried_again(answer, words):
    async with peer() as it:
        ctx = context(it.origin)
        it.answers = [LISTED, NOT_THERE, answer]
        async with reached(ctx) as store:
            with pytest.raises(Unreachable) as cause:
                await store.send(part())
            it.answers = [NOT_THERE]
            await store.send(part())

    assert str(cause.value) == f"bucket 'plant' at {it.origin.removeprefix('http://')} {words}"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            fault(403, "AccessDenied", "no s3:PutObject on p/2026-03-01T08-00-00Z-000001.ndjson"),
            "says 'AccessDenied'",
        ),
        (fault(400, "KeyTooLongError", "too long"), "says 'KeyTooLongError: too long'"),
        (fault(400, "EntityTooLarge"), "says 'EntityTooLarge: a message'"),
        (replies("<html>", status=413), "says '413: Request Entity Too Large'"),
    ],
)
async def test_what_is_said_of_one_part_is_told_from_an_outage(answer, words):
    async with peer() as it:
        it.answers = [LISTED, NOT_THERE, answer]
        async with reached(context(it.origin)) as store:
            with pytest.raises(Declined) as cause:
                await store.send(part())

    assert str(cause.value) == f"bucket 'plant' at {it.origin.removeprefix('http://')} {words}"


async def test_the_tries_of_one_outage_have_one_text_and_the_next_outage_has_its_own():
    async with peer() as it:
        ctx, texts = context(it.origin), []
        it.answers = [LISTED]
        async with reached(ctx) as store:
            for answers in (
                [NOT_THERE, fault(503, "SlowDown")],
                [NOT_THERE, fault(500, "InternalError")],
                [NOT_THERE],
                [NOT_THERE, fault(500, "InternalError")],
            ):
                it.answers = answers
                try:
                    await store.send(part())
                except Unreachable as cause:
                    texts.append(str(cause).partition(" says ")[2])

    assert texts == ["'SlowDown: a message'"] * 2 + ["'InternalError: a message'"]


async def test_a_store_that_knows_the_condition_says_who_was_first():
    async with peer() as it:
        ctx, ours = context(it.origin), part()
        first = fault(412, "PreconditionFailed")
        it.answers = [LISTED]
        async with reached(ctx) as store:
            it.answers = [NOT_THERE, first, told(ours.token)]
            await store.send(ours)  # an answer got lost: it is ours
            it.answers = [NOT_THERE, first, told("another")]
            with pytest.raises(Taken):
                await store.send(ours)
            it.answers = [NOT_THERE, first, replies(status=403)]
            with pytest.raises(Taken):  # nobody can tell, and nothing may be lost
                await store.send(ours)

    puts = [each for each in it.received if each.method == "PUT"]
    assert [each.headers["If-None-Match"] for each in puts] == ["*"] * 3
    assert [each.headers["x-amz-meta-headrace-part"] for each in puts] == [ours.token] * 3


async def test_a_store_that_does_not_know_the_condition_is_looked_into():
    async with peer() as it:
        it.answers = [LISTED, NOT_THERE, fault(501, "NotImplemented")]
        it.answers += [replies(), replies(), NOT_THERE]
        async with reached(context(it.origin)) as store:
            await store.send(part())
            await store.send(part())

    puts = [each for each in it.received if each.method == "PUT"]
    assert ["If-None-Match" in each.headers for each in puts] == [True, False, False]


async def test_who_is_overwritten_by_another_server_notices_where_the_condition_is_ignored():
    async with peer() as it:
        it.answers = [LISTED, NOT_THERE, replies(), told("another")]
        async with reached(context(it.origin)) as store:
            with pytest.raises(Taken):
                await store.send(part())
            ours = part()
            it.answers = [NOT_THERE, replies(), told(ours.token)]
            await store.send(ours)


async def test_what_is_sent_is_signed_and_carries_no_checksum_that_other_stores_refuse():
    async with peer() as it:
        it.answers = [LISTED, NOT_THERE]
        async with reached(context(it.origin)) as store:
            await store.send(part(b'{"n":1}\n'))

    sent = next(each for each in it.received if each.method == "PUT")
    assert sent.body == b'{"n":1}\n'
    assert not [
        name for name in sent.headers if "checksum" in name.lower() or "crc" in name.lower()
    ]
    assert "Transfer-Encoding" not in sent.headers
    assert sent.headers["X-Amz-Content-SHA256"] == sha256(sent.body).hexdigest()


async def test_a_redirect_is_not_followed():
    async with peer() as it, peer() as elsewhere:
        away = replies(status=307, headers={"Location": elsewhere.url()})
        it.answers = [LISTED, NOT_THERE, away]
        async with reached(context(it.origin)) as store:
            with pytest.raises(Unreachable):
                await store.send(part())

    assert elsewhere.received == []


async def test_a_store_that_takes_nothing_any_more_is_given_up(object_store: S3):
    limits = Limits(silent_seconds=0.5)
    async with Wire(object_store) as wire, reached(context(wire.url), limits) as store:
        wire.limit(4 * MIB, cuts=False)
        with pytest.raises(Unreachable) as cause:
            await store.send(part(os.urandom(15 * MIB), "p/hanging"))
        where = wire.url.removeprefix("http://")

    assert str(cause.value) == f"bucket 'plant' at {where} does not answer"


@virtual
async def test_a_store_that_takes_long_is_not_given_up_as_long_as_it_takes_something():
    clock = Clock(asyncio.get_running_loop())

    async def taken() -> None:
        async with clock.timeout(30) as limit:
            body = bytes(6 * PIECE_BYTES)
            async for _ in flowing(body, limit, lambda: clock.monotonic() + 30):
                await clock.sleep(29)
            await clock.sleep(60)

    with pytest.raises(TimeoutError):
        await taken()

    assert clock.monotonic() == 6 * 29 + 30


async def test_no_more_connections_are_made_than_may_be():
    asking = most = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        for _ in range(20):  # the others come meanwhile, as far as they may
            await asyncio.sleep(0)
        asking -= 1
        return web.Response(status=404 if request.method == "HEAD" else 200)

    async with peer() as it:
        it.answers = [LISTED, *[answer] * 24]
        async with reached(context(it.origin), Limits(connections=2)) as store:
            await asyncio.gather(*(store.send(part(key=f"p/{n}")) for n in range(8)))

    assert len(it.received) == 1 + 8 * 3
    assert most == 2


async def test_a_connection_that_is_cut_in_an_upload_is_tried_again(object_store: S3):
    body = os.urandom(12 * MIB)
    async with Wire(object_store) as wire, reached(context(wire.url)) as store:
        wire.limit(3 * MIB, cuts=True)
        with pytest.raises(Unreachable):
            await store.send(part(body, "p/cut"))
        assert not (object_store.objects / "p" / "cut").exists()
        wire.mend()
        await store.send(part(body, "p/cut"))

    assert (object_store.objects / "p" / "cut").read_bytes() == body


# What is not looked at


async def test_nothing_of_the_environment_matters(
    object_store: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "[default]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:9\n"
        "ca_bundle = /nowhere\ns3 =\n  addressing_style = virtual\n"
    )
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AKIDWRONG\naws_secret_access_key = wrong\n"
    )
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    for name, value in {
        "HOME": str(tmp_path),
        "AWS_PROFILE": "not-there",
        "AWS_ACCESS_KEY_ID": "AKIDWRONG",
        "AWS_SECRET_ACCESS_KEY": "wrong",
        "AWS_SESSION_TOKEN": "wrong",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_REGION": "eu-west-1",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_USE_DUALSTACK_ENDPOINT": "true",
        "AWS_CA_BUNDLE": "/nowhere",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported",
        "AWS_MAX_ATTEMPTS": "9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    ctx = context(object_store)

    async with started(sink(ctx, prefix="alone")) as it:
        await it.write([1])

    assert list(objects(object_store, "alone").values()) == [b"1\n"]
    assert ctx.failures == []


async def test_no_secret_is_in_what_is_said(object_store: S3):
    texts = [
        str(await said(context(object_store, secrets={"KEY": "AKIDSOMEBODY"}))),
        str(await said(context(object_store, secrets={"SECRET": "another-secret"}))),
    ]

    assert not [text for text in texts if "AKIDSOMEBODY" in text or "another-secret" in text]
    assert not [text for text in texts if KEY in text or SECRET in text]
