"""Stores that say no to an `s3` output when it starts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.s3 import S3Connection
from headrace.connectors.s3.connection import Limits
from headrace.connectors.s3.objectstore import S3Store
from tests.connected import started
from tests.doubles import StubContext
from tests.peer import peer, replies
from tests.s3_answering import LISTED, MIB, NOT_THERE, SAID, asked, fault, part, reached, said
from tests.s3_sides import context, objects, sink
from tests.services.authority import Authority
from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.services.server import free_port


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


async def test_no_secret_is_in_what_is_said(object_store: S3):
    texts = [
        str(await said(context(object_store, secrets={"KEY": "AKIDSOMEBODY"}))),
        str(await said(context(object_store, secrets={"SECRET": "another-secret"}))),
    ]

    assert not [text for text in texts if "AKIDSOMEBODY" in text or "another-secret" in text]
    assert not [text for text in texts if KEY in text or SECRET in text]
