"""Of which class is what an `s3` output tells of its store, tried against a store that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import FailureClass, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.s3.connection import NotOfAStore, Redirected, silence_class
from headrace.connectors.s3.objectpart import Declined
from tests.peer import Answer, peer, replies
from tests.promises import promise
from tests.s3_answering import LISTED, NOT_THERE, fault, part, reached
from tests.s3_sides import Shop, asking, connection, context, output, shopping
from tests.services import s3
from tests.services.authority import Authority
from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.stand_ins import Told, batches, pipeline, reads, running
from tests.virtual import virtual
from tests.waiting import until


@promise("s3.output.fails.away")
async def test_a_store_that_is_gone_is_unavailable(tmp_path):
    with S3(tmp_path) as server:
        async with reached(context(server)) as store:
            server.kill()
            with pytest.raises(Unreachable, match="connection refused") as cause:
                await store.send(part())

    assert cause.value.failure == "unavailable"


@promise("s3.output.fails.failing")
async def test_a_store_with_troubles_of_its_own_is_unavailable(tmp_path):
    with S3(tmp_path) as server:
        async with reached(context(server)) as store:
            (server.objects / "p" / "n").mkdir(parents=True)  # in the place of the object
            with pytest.raises(Unreachable, match="says 'InternalError") as cause:
                await store.send(part(key="p/n"))

    assert cause.value.failure == "unavailable"


@promise("s3.output.fails.no_bucket")
async def test_a_bucket_that_is_removed_is_for_somebody_to_make(tmp_path):
    with S3(tmp_path) as server:
        async with reached(context(server)) as store:
            async with asking(server) as operator:
                await operator.delete_bucket(Bucket=BUCKET)
            with pytest.raises(Unreachable, match="says 'NoSuchBucket") as cause:
                await store.send(part())

    assert cause.value.failure == "misconfigured"


@promise("s3.output.fails.wrong_key")
@pytest.mark.parametrize(
    ("other", "code"), [("KEY", "InvalidAccessKeyId"), ("SECRET", "SignatureDoesNotMatch")]
)
async def test_a_key_that_is_taken_away_is_for_somebody_to_set(tmp_path, monkeypatch, other, code):
    with S3(tmp_path) as server:
        async with reached(context(server)) as store:
            server.kill()
            monkeypatch.setattr(s3, other, "another")
            server.start()
            with pytest.raises(Unreachable, match=f"says '{code}") as cause:
                await store.send(part())

    assert cause.value.failure == "misconfigured"


@promise("s3.output.fails.part")
async def test_a_part_that_is_refused_alone_is_at_fault_itself(object_store: S3):
    async with reached(context(object_store)) as store:
        with pytest.raises(Declined, match="says 'KeyTooLongError'") as cause:
            await store.send(part(key="p" + 600 * "/x"))
        await store.send(part(key="p/shorter"))

    assert cause.value.failure == "invalid"


@promise("s3.output.fails.no_store")
async def test_a_store_without_the_tls_that_it_had_is_for_somebody_to_set(
    tmp_path, authority: Authority
):
    with S3(tmp_path, tls=authority) as server:
        trusting = context(server, connection={"ca_file": str(authority.ca_file)})
        async with reached(trusting) as store:
            server.kill()
            server.tls = None
            server.start()
            with pytest.raises(Unreachable, match="breaks off the TLS handshake") as cause:
                await store.send(part())

    assert cause.value.failure == "misconfigured"


@pytest.mark.parametrize(
    ("answer", "kind", "failure"),
    [
        (fault(503, "SlowDown"), Unreachable, "unavailable"),
        (fault(409, "OperationAborted"), Unreachable, "unavailable"),
        (replies(status=429), Unreachable, "unavailable"),
        (replies("<html>", status=502), Unreachable, "unavailable"),
        (fault(400, "ExpiredToken"), Unreachable, "misconfigured"),
        (replies(status=401), Unreachable, "misconfigured"),
        (replies(status=404), Unreachable, "misconfigured"),
        (fault(301, "PermanentRedirect"), Unreachable, "misconfigured"),
        (fault(403, "AccessDenied"), Declined, "misconfigured"),
        (replies("<html>", status=403), Declined, "misconfigured"),
        (fault(400, "EntityTooLarge"), Declined, "invalid"),
        (replies("<html>", status=413), Declined, "invalid"),
        (fault(400, "ACodeThatNobodyKnows"), Declined, "invalid"),
    ],
)
async def test_the_code_of_an_answer_or_else_its_status_tells_the_class(
    answer: Answer, kind: type[Unreachable | Declined], failure: FailureClass
):
    async with peer() as it:
        it.answers = [LISTED, NOT_THERE, answer]
        async with reached(context(it.origin)) as store:
            with pytest.raises(kind) as cause:
                await store.send(part())

    assert cause.value.failure == failure


@virtual
async def test_what_is_told_of_parts_has_the_class_of_what_the_store_said():
    ctx = context("http://127.0.0.1:1")
    shop = Shop(ctx.clock)
    shop.faults = [
        Unreachable("slow down"),
        Unreachable("no such bucket", "misconfigured"),
        Declined("access denied", "misconfigured"),
        Declined("too large"),
        Unreachable("signature", "misconfigured"),
    ]
    made = shopping(ctx, shop)
    await made.start()
    await made.write([1])
    await ctx.clock.sleep(60)
    await made.finish()

    assert shop.faults == []
    assert ctx.classes == [
        "unavailable",
        "misconfigured",
        "misconfigured",
        "invalid",
        "misconfigured",
    ]


def test_an_answer_that_is_none_of_a_store_is_for_somebody_to_set():
    assert silence_class(NotOfAStore()) == "misconfigured"
    assert silence_class(Redirected("https://elsewhere")) == "misconfigured"
    assert silence_class(TimeoutError()) == "unavailable"


@pytest.mark.long
async def test_messages_of_parts_that_are_nowhere_are_counted_as_lost(tmp_path):
    with S3(tmp_path) as server:
        clock = Clock(asyncio.get_running_loop())
        lake, secrets = connection(server), Secrets({"KEY": KEY, "SECRET": SECRET}, {})
        async with closing(Engine(clock, connections={"lake": lake}, secrets=secrets)) as it:
            source = Told(it.clock, [0.1, batches([1], [2, 3])])
            await it.compile(pipeline("p", [reads(source)], [], [output()]))
            server.kill()
            ending = running(it, "p")
            await until(lambda: ending.failures.total > 0)

    last = ending.failures.table.latest()[0]
    assert last.message == "parts are lost: they could not be uploaded in time"
    assert last.failure == "unavailable"
    lost = [(each.stage, each.reason, each.count) for each in ending.failures.losses if each.count]
    assert lost == [("output", "stopped", 3)]


@asynccontextmanager
async def closing(it: Engine) -> AsyncIterator[Engine]:
    """Give an engine; close it in the end."""
    try:
        yield it
    finally:
        await it.close()
