"""What the `s3` output makes of the answers of its store while it runs."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from http import HTTPStatus

import pytest
from aiohttp import web

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.connectors.s3.connection import PIECE_BYTES, Limits, Redirected, flowing
from headrace.connectors.s3.objectpart import Declined, Taken
from tests.peer import peer, replies
from tests.s3_answering import LISTED, MIB, NOT_THERE, fault, part, reached, told
from tests.s3_sides import Wire, context
from tests.services.s3 import S3
from tests.virtual import virtual


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
        (replies("<html>", status=413), f"says '413: {HTTPStatus(413).phrase}'"),
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


def test_where_a_redirect_leads_is_no_part_of_what_the_error_shows():
    error = Redirected("https://user:hidden@elsewhere")

    assert "hidden" not in f"{error} {error!r}"
