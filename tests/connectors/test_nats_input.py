"""The `nats` input, against a real server."""

from __future__ import annotations

import asyncio
import signal

import pytest
from nats.aio.client import DEFAULT_BUFFER_SIZE

from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.nats import NatsInput
from headrace.connectors.nats.connection import Limits
from tests.clients import PATIENCE
from tests.connected import subscribed
from tests.doubles import refusals
from tests.nats_sides import arrived, context, listening, payloads, peer, signalled, source
from tests.promises import promise
from tests.services.nats import Nats
from tests.stopwatch import Stopwatch
from tests.waiting import until

ODD = [b"", b"\xff\xfe", b"{half", b"[" * 100_000, bytes(range(256)), b"\r\nPUB odd 1\r\nx\r\n"]


@pytest.mark.parametrize(
    "subject", ["a", "a.b.c", "plant.*.temp", "plant.>", ">", "*", "$SYS.x", "Ä.ü", "a-b_c.1"]
)
def test_a_subject_is_tokens_and_wildcards(subject):
    assert NatsInput.load({"connection": "bus", "subject": f" {subject} "}).subject == subject


@pytest.mark.parametrize(
    ("subject", "objection"),
    [
        ("  ", "this must not be blank"),
        ("a b", "a subject holds no blanks and no control characters"),
        ("a\x00", "a subject holds no blanks and no control characters"),
        ("a\r\nPUB b 0", "a subject holds no blanks and no control characters"),
        ("a\u2003b", "a subject holds no blanks and no control characters"),
        ("a" * 1001, "a subject of 1,001 characters is too long: at most 1,000"),
        (".a", "a token of the subject is empty"),
        ("a..b", "a token of the subject is empty"),
        ("a.", "a token of the subject is empty"),
        ("a*.b", "'*' and '>' are wildcards only as whole tokens"),
        ("a.b>", "'*' and '>' are wildcards only as whole tokens"),
        (">.a", "'>' can only be the last token"),
    ],
)
def test_what_no_server_takes_for_a_subject_is_refused(subject, objection):
    document = {"connection": "bus", "subject": subject}

    assert refusals(NatsInput, document) == [f"subject: {objection}"]


@promise("delivery.begins.ready")
async def test_what_is_published_once_it_is_ready_arrives(nats_server: Nats):
    async with peer(nats_server) as publisher:
        for n in range(20):
            async with subscribed(source(context(nats_server), "ready")) as reader:
                publisher.publish("ready", n)

                assert await payloads(reader, 1) == [b"%d" % n]


async def test_payloads_are_handed_over_as_they_are(nats_server: Nats):
    built = source(context(nats_server), "odd")
    async with subscribed(built) as reader, peer(nats_server) as publisher:
        publisher.publish("odd", *ODD)

        assert await payloads(reader, len(ODD)) == ODD


async def test_payloads_may_be_as_large_as_the_server_takes(tmp_path):
    large = b'"' + b"x" * (16 << 20) + b'"'
    with Nats(tmp_path, extra=["max_payload: 33554432"]) as server:
        built = source(context(server), "large")
        async with subscribed(built) as reader, peer(server) as publisher:
            publisher.publish("large", large, 1)

            assert await payloads(reader, 2) == [large, b"1"]


async def test_what_has_arrived_is_handed_over_at_once(nats_server: Nats):
    async with subscribed(source(context(nats_server), "many")) as reader:
        async with peer(nats_server) as publisher:
            publisher.publish("many", *range(1000))
            await publisher.settle()

        chunks = [await anext(reader)]
        while sum(map(len, chunks)) < 1000:
            chunks.append(await anext(reader))

    assert [payload for chunk in chunks for payload, _ in chunk] == [b"%d" % n for n in range(1000)]
    assert len(chunks) < 100


async def test_wildcards_match_and_the_metadata_has_the_concrete_subject(nats_server: Nats):
    built = source(context(nats_server), "plant.*.temp")
    async with subscribed(built) as reader, peer(nats_server) as publisher:
        publisher.publish("plant.1.temp", 1)
        publisher.publish("plant.1.speed", 2)
        publisher.publish("plant.2.temp", 3, reply="answers.here")

        found = await arrived(reader, 2)

    assert [(payload, built.describe(origin)) for payload, origin in found] == [
        (b"1", {"connection": "bus", "subject": "plant.1.temp", "reply": None, "headers": {}}),
        (
            b"3",
            {
                "connection": "bus",
                "subject": "plant.2.temp",
                "reply": "answers.here",
                "headers": {},
            },
        ),
    ]


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        (b"NATS/1.0\r\nA: 1\r\n\r\n", {"A": ["1"]}),
        (b"NATS/1.0\r\nA: 1\r\nb:2\r\nA:  3 \r\n\r\n", {"A": ["1", "3"], "b": ["2"]}),
        (b"NATS/1.0\r\na: 1\r\nA: 2\r\n\r\n", {"a": ["1"], "A": ["2"]}),
        (b"NATS/1.0\r\nWhen: 12:30:00\r\nNone:\r\n\r\n", {"When": ["12:30:00"], "None": [""]}),
        (b"NATS/1.0 503 No One\r\nA: 1\r\n\r\n", {"A": ["1"]}),
        (b"NATS/1.0 404\r\n\r\n", {}),
        (b"NATS/1.0\r\n\r\n", {}),
        (b"NATS/1.0\r\nno header\r\nA: \xff\xc3\xbc\r\n\r\n", {"A": ["\ufffd\u00fc"]}),
    ],
)
async def test_headers_keep_their_repeats_and_their_case(nats_server: Nats, raw, headers):
    built = source(context(nats_server), "headers")
    async with subscribed(built) as reader, peer(nats_server) as publisher:
        publisher.publish("headers", {"n": 1}, headers=raw)

        [(payload, origin)] = await arrived(reader, 1)

    assert (payload, built.describe(origin)["headers"]) == (b'{"n": 1}', headers)


async def test_a_subject_that_is_no_text_ends_nothing(nats_server: Nats):
    built = source(context(nats_server), "raw.>")
    async with subscribed(built) as reader, peer(nats_server) as publisher:
        publisher.publish(b"raw.\xff\xfe", 1)
        publisher.publish("raw.b", 2)

        found = await arrived(reader, 2)

    told = [(payload, built.describe(origin)["subject"]) for payload, origin in found]
    assert told == [(b"1", "raw.\ufffd\ufffd"), (b"2", "raw.b")]


async def test_a_subject_that_may_not_be_read_is_refused_with_the_words_of_the_server(tmp_path):
    users = '[{ user: u, password: p, permissions: { subscribe: { allow: ["ok.>"] } } }]'
    with Nats(tmp_path, extra=[f"authorization {{ users: {users} }}"]) as server:
        ctx = context(f"nats://u:p@{server.address}")
        async with subscribed(source(ctx, "ok.a")):
            pass

        with pytest.raises(BuildRefused) as refused:
            await anext(source(ctx, "Other.x").read())

    assert str(refused.value) == (
        f'{server.address} does not permit it: permissions violation for subscription to "other.x"'
    )
    assert refused.value.fault.code == "turned-away"


@promise("nats.input.waits", "nats.input.beyond")
async def test_beyond_what_may_wait_each_message_is_dropped_and_counted(nats_server):
    ctx, limits = context(nats_server), Limits(waiting_messages=1000)
    async with subscribed(source(ctx, "flood", limits)) as reader, peer(nats_server) as publisher:
        await flooded(publisher, ctx, [*range(5000)], dropped=4000)

        assert await payloads(reader, 1000) == [b"%d" % n for n in range(1000)]
        publisher.publish("flood", "later")
        assert await payloads(reader, 1) == [b'"later"']
    said = (
        "dropped a message: they arrive faster than they are worked off, and"
        " 1,000 of them or 64 MiB wait already"
    )
    assert set(ctx.failures) == {said}
    assert ctx.lost == {said: 4000}


async def test_payloads_that_wait_are_bounded_by_their_size_as_well(nats_server):
    ctx, limits = context(nats_server), Limits(waiting_bytes=1_000_000)
    async with subscribed(source(ctx, "flood", limits)) as reader, peer(nats_server) as publisher:
        await flooded(publisher, ctx, [b"x" * 100_000] * 30, dropped=20)

        assert await payloads(reader, 10) == [b"x" * 100_000] * 10
        publisher.publish("flood", b"x" * 1_000_000)
        assert len((await payloads(reader, 1))[0]) == 1_000_000


async def flooded(publisher, ctx, messages, *, dropped):
    """Publish so much that so many messages are dropped; return when they are."""
    publisher.publish("flood", *messages)
    await publisher.settle()
    await until(lambda: len(ctx.failures) >= dropped)
    assert len(ctx.failures) == dropped


async def test_what_has_arrived_when_it_is_to_stop_is_read_out_and_nothing_else(nats_server):
    built = source(context(nats_server), "stop")
    async with subscribed(built) as reader, peer(nats_server) as publisher:
        publisher.publish("stop", 1, 2, 3)
        first = await arrived(reader, 1)
        await until(lambda: sum(built.close()) + len(first) == 3)

        assert built.stop() is True
        publisher.publish("stop", 4)
        await publisher.settle()

        rest = [each async for chunk in reader for each in chunk]
    assert [payload for payload, _ in first + rest] == [b"1", b"2", b"3"]


async def test_it_stops_at_once_when_nothing_arrives(nats_server: Nats):
    built = source(context(nats_server), "quiet")
    async with subscribed(built) as reader:
        waiting = asyncio.ensure_future(anext(reader, None))
        await asyncio.sleep(0)

        assert built.stop() is True

        async with asyncio.timeout(PATIENCE):
            assert await waiting == []
            assert await anext(reader, None) is None


async def test_what_nobody_reads_out_is_counted_in_batches(nats_server: Nats):
    built = source(context(nats_server), "left", max_batch=2)
    async with subscribed(built), peer(nats_server) as publisher:
        assert built.close() == []
        publisher.publish("left", 1, 2, 3)
        await until(lambda: built.close() == [2, 1])
    assert built.close() == []


async def test_before_it_is_connected_there_is_nothing_to_read_out():
    assert source(context("127.0.0.1:1"), "a").stop() is False


async def test_a_lost_connection_is_the_one_failure_of_its_outage(tmp_path):
    with Nats(tmp_path) as server:
        built = source(context(server), "a")
        async with subscribed(built) as reader:
            async with peer(server) as publisher:
                publisher.publish("a", 1)
                assert await payloads(reader, 1) == [b"1"]
            server.kill()
            with pytest.raises(Unreachable) as lost:
                await anext(reader)
        with pytest.raises(Unreachable) as again:
            await anext(built.read())
        server.start()
        async with subscribed(built) as reader, peer(server) as publisher:
            publisher.publish("a", 2)
            assert await payloads(reader, 1) == [b"2"]

    assert str(lost.value) == str(again.value)
    assert str(lost.value) == (
        f"lost the connection to {server.address}: what is published until it is back does not arrive"
    )


async def test_closing_takes_no_time_when_the_server_hangs(tmp_path):
    with Nats(tmp_path) as server:
        reader = source(context(server), "a").read()
        await anext(reader)
        with server.halted():
            watch = Stopwatch()
            await reader.aclose()
            assert watch.seconds < 1


async def test_a_user_who_is_taken_away_is_told(tmp_path):
    with Nats(tmp_path, user="u", password="p") as server:
        built = source(context(server), "a")
        async with subscribed(built) as reader:
            file = tmp_path / "nats.conf"
            file.write_text(file.read_text().replace('"password": "p"', '"password": "q"'))
            signalled(server, signal.SIGHUP)
            with pytest.raises(Unreachable) as lost:
                await anext(reader)
        with pytest.raises(BuildRefused) as again:
            await anext(built.read())

    assert str(lost.value).startswith(f"lost the connection to {server.address}")
    assert str(again.value) == (
        f"{server.address} turns the connection away: Authorization Violation"
    )


async def test_a_subject_that_may_no_longer_be_read_is_told_in_the_words_of_the_server(tmp_path):
    user = '{ user: u, password: p, permissions: { subscribe: ["a"] } }'
    with Nats(tmp_path, extra=[f"authorization {{ users: [{user}] }}"]) as server:
        built = source(context(f"nats://u:p@{server.address}"), "a")
        async with subscribed(built) as reader:
            file = tmp_path / "nats.conf"
            file.write_text(file.read_text().replace('["a"]', '["b"]'))
            signalled(server, signal.SIGHUP)
            with pytest.raises(BatchFailed) as lost:
                await anext(reader)

    assert str(lost.value).startswith(
        f"{server.address} does not permit it any more: permissions violation for subscription"
        ' to "a"'
    )


async def test_a_server_that_says_why_it_hangs_up_is_quoted():
    async def expiring(reader, writer):
        writer.write(b'INFO {"max_payload":1048576}\r\n')
        for _ in range(2):
            while (await reader.readline()) != b"PING\r\n":
                pass
            writer.write(b"PONG\r\n")
        writer.write(b"-ERR 'User Authentication Expired'\r\n")

    async with listening(expiring) as where, subscribed(source(context(where), "a")) as reader:
        with pytest.raises(Unreachable) as lost:
            await anext(reader)

    assert str(lost.value) == f"{where} hung up: user authentication expired"


async def test_a_server_about_to_shut_down_is_warned_of(tmp_path):
    with Nats(tmp_path) as server:
        ctx = context(server)
        async with subscribed(source(ctx, "a")):
            signalled(server, signal.SIGUSR2)
            await until(lambda: bool(ctx.warnings))
    assert ctx.warnings == [f"{server.address} is about to shut down and will hang up"]


async def test_a_server_that_never_pauses_leaves_room_for_others(nats_server):
    wanted, body = 20_000, b'"%s"' % (b"x" * 98)
    most = 0
    flooded = subscribed(source(context(nats_server), "flood"))
    async with flooded as reader, peer(nats_server) as publisher:
        publisher.publish("flood", *[body] * wanted)
        while wanted > 0:
            taken = await arrived(reader, 1)
            wanted, most = wanted - len(taken), max(most, len(taken))

    # What is read at once and no more: then everybody else has had a turn.
    assert most * len(body) < 2 * DEFAULT_BUFFER_SIZE
