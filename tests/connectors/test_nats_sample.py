"""Samples of NATS subjects, from a real server, beside clients that must not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.runtime.sampling import Unread
from headrace.connectors.nats import NatsConnection, NatsInput
from tests.nats_sides import peer
from tests.sampled import engine, failed, reading, shown, take, taken
from tests.services.authority import Authority
from tests.services.nats import Nats
from tests.waiting import until


def bus(urls: str, **options: Any) -> NatsConnection:
    return NatsConnection.load({"urls": urls, **options})


def subject(name: str, **options: Any) -> NatsInput:
    return NatsInput.load({"connection": "bus", "subject": name, **options})


async def test_others_get_everything_that_a_sample_shows(nats_server: Nats):
    async with (
        engine(bus=bus(nats_server.url)) as it,
        peer(nats_server) as publisher,
        peer(nats_server) as other,
        reading(it, subject("sample.>"), most=3) as asking,
    ):
        await other.subscribe("sample.>")
        publisher.publish("sample.a", 1, 2, 3)

        said = await asking
        assert said.messages == await other.several(3) == [1, 2, 3]
        assert said.notes == []


async def test_a_member_of_a_queue_group_gets_everything(nats_server: Nats):
    async with (
        engine(bus=bus(nats_server.url)) as it,
        peer(nats_server) as publisher,
        peer(nats_server) as member,
        reading(it, subject("queued"), most=20) as asking,
    ):
        member.say(b"SUB queued workers 1")
        await member.settle()
        publisher.publish("queued", *range(20))

        assert (await asking).messages == await member.several(20) == [*range(20)]


async def test_metadata_is_that_of_the_message(nats_server: Nats):
    async with (
        engine(bus=bus(nats_server.url)) as it,
        peer(nats_server) as publisher,
        reading(it, subject("about", envelope={"type": "merge"}), most=1) as asking,
    ):
        publisher.publish("about", {"n": 1}, reply="answers")
        about = (await asking).messages[0]["_meta"]

    assert (about["subject"], about["reply"]) == ("about", "answers")
    assert about["pipeline"].startswith("sample-")


async def test_without_traffic_there_are_no_messages(nats_server: Nats):
    async with engine(bus=bus(nats_server.url)) as it:
        said = await taken(it, subject("quiet"), seconds=0.2)

    assert (said.messages, said.notes) == ([], [])


async def test_a_server_that_is_not_there_is_told():
    async with engine(bus=bus("nats://ann:open-sesame@127.0.0.1:1")) as it:
        why = await failed(it, subject("s"), seconds=0.5)

    assert why == "127.0.0.1:1 does not answer: connection refused"


async def test_a_wrong_credential_is_told_at_once_and_is_in_no_answer(tmp_path: Path):
    with Nats(tmp_path, user="ann", password="open-sesame") as server:
        async with engine(bus=bus(f"nats://ann:close-sesame@{server.address}")) as it:
            said = await take(it, subject("s"))

    assert isinstance(said, Unread)
    assert said.reason.startswith(f"{server.address} turns the connection away")
    assert "sesame" not in str(said)


@pytest.mark.parametrize("is_plain", [True, False])
async def test_tls_that_does_not_fit_is_told_at_once(
    tmp_path: Path, authority: Authority, is_plain: bool
):
    with Nats(tmp_path, tls=None if is_plain else authority) as server:
        scheme = "tls" if is_plain else "nats"
        async with engine(bus=bus(f"{scheme}://{server.address}")) as it:
            why = await failed(it, subject("s"))

    expected = (
        "does not ask for TLS, and the connection is not made without"
        if is_plain
        else "asks for TLS, and the connection is without"
    )
    assert why == f"{server.address} {expected}"


async def test_a_server_that_stops_leaves_what_was_read(tmp_path: Path):
    with Nats(tmp_path) as server:
        async with (
            engine(bus=bus(server.url)) as it,
            peer(server) as publisher,
            reading(it, subject("s"), most=5) as asking,
        ):
            publisher.publish("s", 1, 2)
            await until(lambda: shown(it) == 2)
            server.stop()
            said = await asking

    assert said.messages == [1, 2]
    assert len(said.notes) >= 1
    assert server.address in said.notes[-1]
