"""NATS in whole pipelines, against real servers: what is refused, what an outage costs, what is bounded."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.envelopes import Merge
from headrace.compiler.config.program import load_program
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.documents import read
from headrace.connectors.nats import NatsConnection, NatsInput, NatsOutput
from tests.clients import PATIENCE
from tests.nats_sides import peer
from tests.promises import promise
from tests.services.nats import Nats
from tests.stand_ins import Kept, pipeline, running, takes
from tests.stopwatch import Stopwatch
from tests.waiting import until

GARBAGE = [b"", b"{half", b"\xff\xfe", b"[" * 1000, b"nan", b'{"a":1}}', b"\x00" * 1000, b"'a'"]


@asynccontextmanager
async def engine(urls, *, out=None, secrets=None, **options):
    """Give an engine with a connection 'bus', and with ``out`` another one; it is closed in the end."""
    connections = {"bus": NatsConnection.load({"urls": urls, **options})}
    if out is not None:
        connections["out"] = NatsConnection.load({"urls": out})
    it = Engine(
        Clock(asyncio.get_running_loop()),
        connections=connections,
        secrets=Secrets(secrets or {}),
    )
    try:
        yield it
    finally:
        await it.close()


def reads(subject, **options):
    return NatsInput(connection="bus", subject=subject, **options)


def writes(subject):
    return NatsOutput(connection="bus", subject=subject)


def failures(it, id="p"):
    """Return stage, text and count of what failed."""
    found = running(it, id).failures.table.latest()
    return {(each.stage, each.message): each.count for each in found}


def statuses(it):
    return {view.id: view.status for view in it.graph.pipelines.values()}


async def test_one_pipeline_writes_what_another_reads(nats_server: Nats):
    kept = Kept()
    async with engine(nats_server.url) as it:
        await it.compile(pipeline("b", [reads("chain.two")], [], [takes(kept)]))
        await it.compile(pipeline("a", [reads("chain.one")], [], [writes("chain.two")]))
        async with peer(nats_server) as publisher:
            publisher.publish("chain.one", *range(100))
            await until(lambda: len(kept.batches) == 100)

    assert kept.batches == [[n] for n in range(100)]


async def test_batches_coalesce_what_has_arrived(nats_server: Nats):
    kept = Kept()
    async with engine(nats_server.url) as it:
        await it.compile(pipeline("p", [reads("burst", max_batch=40)], [], [takes(kept)]))
        async with peer(nats_server) as publisher:
            publisher.publish("burst", *range(100))
            await until(lambda: sum(map(len, kept.batches)) == 100)

    assert [n for batch in kept.batches for n in batch] == [*range(100)]
    assert 3 <= len(kept.batches) < 30
    assert max(map(len, kept.batches)) == 40


async def test_an_envelope_has_the_metadata_of_this_kind(nats_server: Nats):
    kept = Kept()
    async with engine(nats_server.url) as it:
        await it.compile(pipeline("p", [reads("meta.>", envelope=Merge())], [], [takes(kept)]))
        async with peer(nats_server) as publisher:
            publisher.publish("meta.x", {"temp": 21.5}, headers=b"NATS/1.0\r\nK: a\r\nK: b\r\n\r\n")
            await until(lambda: bool(kept.batches))

    [[message]] = kept.batches
    assert message["_meta"].pop("received_at").endswith("+00:00")
    assert message == {
        "temp": 21.5,
        "_meta": {
            "pipeline": "p",
            "input": "nats",
            "connection": "bus",
            "subject": "meta.x",
            "reply": None,
            "headers": {"K": ["a", "b"]},
        },
    }


async def test_good_messages_arrive_among_ten_thousand_pieces_of_garbage(nats_server: Nats, caplog):
    kept = Kept()
    async with engine(nats_server.url) as it:
        await it.compile(pipeline("p", [reads("dirt", max_batch=100)], [], [takes(kept)]))
        async with peer(nats_server) as publisher:
            for n in range(100):
                publisher.publish("dirt", n, *[GARBAGE[i % len(GARBAGE)] for i in range(100)])
                await publisher.settle()
            await until(lambda: sum(map(len, kept.batches)) == 100)
        assert failures(it) == {}

    assert [n for batch in kept.batches for n in batch] == [*range(100)]
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == len(set(warned)) <= len(GARBAGE)
    assert all("skipped a payload that is not JSON" in text for text in warned)


@pytest.mark.parametrize("side", ["inputs", "outputs"])
async def test_a_wrong_credential_refuses_the_pipeline_and_shows_nowhere(tmp_path, side, caplog):
    with Nats(tmp_path, user="press", password="right") as server:
        urls = f"nats://press:${{PASSWORD}}@{server.address}"
        async with engine(urls, secrets={"PASSWORD": "wr0ng-secret"}) as it:
            inputs = [reads("a")] if side == "inputs" else []
            outputs = [writes("b")] if side == "outputs" else [takes(Kept())]
            with pytest.raises(Refused) as refused:
                await it.compile(pipeline("p", inputs, [], outputs))
            assert statuses(it) == {}

    [diagnostic] = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "turned-away",
        f"{server.address} turns the connection away: Authorization Violation",
    )
    said = [str(refused.value), repr(refused.value.diagnostics), *map(str, caplog.records)]
    assert "wr0ng-secret" not in "".join(said)


@pytest.mark.long
async def test_a_server_that_comes_later_is_waited_for(tmp_path):
    kept = Kept()
    server = Nats(tmp_path)
    async with engine(server.url) as it:
        await it.compile(pipeline("in", [reads("late")], [], [takes(kept)]))
        await it.compile(pipeline("out", [reads("early")], [], [writes("late")]))
        assert statuses(it) == {"in": "running", "out": "starting"}
        refused = f"{server.address} does not answer: connection refused"
        assert [*failures(it, "in")] == [("input", refused)]
        with server:
            await until(lambda: statuses(it)["out"] == "running")
            async with peer(server) as publisher:
                await published_until(publisher, "early", lambda: bool(kept.batches))


async def published_until(publisher, subject, is_so):
    """Publish numbers until something is so; return how many it took."""
    count = 0
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            publisher.publish(subject, count)
            await publisher.settle()
            count += 1
    return count


@promise("nats.input.away", "nats.input.twice")
async def test_an_outage_under_load_is_one_failure_and_over_soon_after(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    got = Kept()
    with Nats(tmp_path) as server:
        async with engine(server.url) as it:
            await it.compile(pipeline("p", [reads("in")], [], [writes("mid")]))
            await it.compile(pipeline("last", [reads("mid")], [], [takes(got)]))
            async with peer(server) as publisher:
                await published_until(publisher, "in", lambda: len(got.batches) > 100)
                await asyncio.to_thread(server.kill)
            await until(lambda: failures(it).get(("input", lost(server)), 0) > 2)
            await asyncio.to_thread(server.start)
            back, before = Stopwatch(), len(got.batches)
            async with peer(server) as publisher:
                await published_until(publisher, "in", lambda: len(got.batches) > before)
            assert back.seconds < 3

            assert statuses(it) == {"p": "running", "last": "running"}
            assert [key for key in failures(it) if key[0] == "input"] == [("input", lost(server))]
            assert [*failures(it, "last")] == [("input", lost(server))]
    assert not [record for record in caplog.records if record.exc_info]
    assert {record.name for record in caplog.records} == {"headrace.pipeline"}


def lost(server):
    return f"lost the connection to {server.address}: what is published until it is back does not arrive"


@promise("nats.output.away", "nats.output.twice")
async def test_the_batches_of_an_outage_are_one_failure_and_never_come_later(tmp_path):
    with Nats(tmp_path / "a") as source, Nats(tmp_path / "b") as target:
        async with engine(source.url, out=target.url) as it:
            writes_there = NatsOutput(connection="out", subject="b")
            await it.compile(pipeline("p", [reads("a")], [], [writes_there]))
            async with peer(source) as publisher:
                target.kill()
                key = ("output", f"{target.address} does not answer: connection refused")
                count = await published_until(publisher, "a", lambda: failures(it).get(key, 0) > 20)
                await until(lambda: running(it, "p").counters.inbound == count)
                await until(lambda: running(it, "p").in_flight == 0)
                target.start()
                async with peer(target) as reader:
                    await reader.subscribe("b")
                    heard = asyncio.ensure_future(reader.next())
                    while not heard.done():
                        publisher.publish("a", "new")
                        await publisher.settle()
                        await asyncio.sleep(0)
                    assert heard.result() == ("b", "new")
            assert len([key for key in failures(it) if "confirm" not in key[1]]) == 1


async def test_of_several_servers_the_next_one_takes_over(tmp_path):
    kept = Kept()
    with Nats(tmp_path / "a") as one, Nats(tmp_path / "b") as two:
        async with engine(f"{one.url},{two.url}") as it:
            await it.compile(pipeline("p", [reads("a")], [], [takes(kept)]))
            async with peer(one) as publisher:
                publisher.publish("a", 1)
                await until(lambda: kept.batches == [[1]])
            one.kill()
            async with peer(two) as publisher:
                await published_until(publisher, "a", lambda: len(kept.batches) > 1)


async def test_a_pipeline_ends_at_once_under_load_and_with_a_server_that_hangs(tmp_path):
    with Nats(tmp_path) as server:
        async with engine(server.url) as it, peer(server) as publisher:
            for id in ("a", "b"):
                await it.compile(pipeline(id, [reads("in")], [], [takes(Kept())]))
            publisher.publish("in", *range(1000))

            watch = Stopwatch()
            await it.dispose("a")
            with server.halted():
                await it.dispose("b")
            assert watch.seconds < 2


def test_waiting_for_delivery_is_refused_and_the_text_says_why():
    text = "[{inputs: [{type: nats, connection: bus, subject: a, ack: on_delivery}]}]"
    _, diagnostics = load_program(read(text, None, "yaml"), Catalogue([NatsInput]))

    [told] = [each for each in diagnostics if each.code == "nothing-to-acknowledge"]
    assert told.message == (
        "a message from 'nats' is acknowledged to nobody (core NATS sends it once and keeps no copy"
        " to send again), so 'ack' cannot be on_delivery"
    )
