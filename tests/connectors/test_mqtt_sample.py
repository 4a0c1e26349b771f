"""Samples of MQTT topics, from a real broker, beside clients that must not notice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from headrace.compiler.runtime.sampling import Unread
from headrace.connectors.mqtt import MqttConnection, MqttInput
from tests.mqtt_sides import connection, heard, listening, somebody
from tests.sampled import engine, failed, reading, shown, take, taken
from tests.services.authority import Authority
from tests.services.mosquitto import Mosquitto
from tests.stand_ins import Kept, pipeline, running, takes
from tests.waiting import until


def topic(name: str, **options: Any) -> MqttInput:
    return MqttInput.load({"connection": "bus", "topic": name, **options})


async def publish(server: Mosquitto, topic: str, *values: Any, **options: Any) -> None:
    async with somebody(server) as client:
        for value in values:
            await client.publish(topic, json.dumps(value), **options)


def received(messages: list[aiomqtt.Message]) -> list[Any]:
    return [json.loads(message.payload) for message in messages]


@pytest.mark.parametrize("qos", ["at_most_once", "at_least_once", "exactly_once"])
async def test_others_get_everything_that_a_sample_shows(mosquitto: Mosquitto, qos: str):
    async with (
        engine(bus=connection(mosquitto)) as it,
        listening(mosquitto, f"s/{qos}/#", 2) as other,
        reading(it, topic(f"s/{qos}/+", qos=qos), most=3) as asking,
    ):
        await publish(mosquitto, f"s/{qos}/a", 1, 2, 3, qos=2)

        said = await asking
        assert received(await heard(other, 3)) == said.messages == [1, 2, 3]
    assert len(said.notes) == 1
    assert said.notes[0].startswith("read with a client id of its own, 'headrace-sample-")
    assert said.notes[0].endswith(f"-s/{qos}/*', and a clean session")


async def test_more_than_a_broker_lets_a_client_hold_is_shown(mosquitto: Mosquitto):
    async with (
        engine(bus=connection(mosquitto)) as it,
        reading(it, topic("s/many", qos="at_least_once"), most=50) as asking,
    ):
        await publish(mosquitto, "s/many", *range(60), qos=1)

        assert (await asking).messages == [*range(50)]


async def test_nothing_is_acknowledged_that_the_broker_does_not_wait_for(tmp_path: Path):
    with Mosquitto(tmp_path, extra=["log_type all"]) as server:
        async with (
            engine(bus=connection(server)) as it,
            reading(it, topic("t", qos="at_least_once"), most=10) as asking,
        ):
            await publish(server, "t", *range(10), qos=1)
            assert len((await asking).messages) == 10

        assert "Sending PUBLISH to headrace-sample-" in server.log()
        assert "Received PUBACK from headrace-sample-" not in server.log()


async def test_the_members_of_a_shared_subscription_miss_nothing(mosquitto: Mosquitto):
    shared = "$share/workers/s/shared/#"
    async with (
        engine(bus=connection(mosquitto)) as it,
        listening(mosquitto, shared, 1) as member,
        reading(it, topic(shared, qos="at_least_once"), most=10) as asking,
    ):
        await publish(mosquitto, "s/shared/a", *range(10), qos=1)

        said = await asking
        assert received(await heard(member, 10)) == said.messages == [*range(10)]
    assert said.notes[1] == (
        "subscribed to 's/shared/#' alone: a member of the group would take its messages from the"
        " others"
    )


async def test_the_session_of_a_pipeline_keeps_what_waits_in_it(mosquitto: Mosquitto):
    """A client that is away, with a session, is what such a pipeline is."""
    away = {"identifier": "headrace-p-s/kept", "clean_session": False}
    async with somebody(mosquitto, **away) as client:
        await client.subscribe("s/kept", 1)
    await publish(mosquitto, "s/kept", 1, 2, qos=1)

    async with engine(bus=connection(mosquitto)) as it:
        config = topic("s/kept", qos="at_least_once", ack="on_delivery")
        said = await taken(it, config, seconds=0.5)
    assert said.messages == []
    assert said.notes[1] == "what waits in the pipeline's session is not shown, and stays there"

    async with somebody(mosquitto, **away) as client:
        assert received(await heard(client, 2)) == [1, 2]


async def has_session(server: Mosquitto, identifier: str) -> bool:
    """Ask a broker whether it keeps a session of a client: it says so to who goes on with it."""
    name = identifier.encode()
    rest = b"\x00\x04MQTT\x04\x00\x00\x3c" + len(name).to_bytes(2) + name
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(b"\x10" + bytes([len(rest)]) + rest)
        answer = await reader.readexactly(4)
        assert (answer[0], answer[3]) == (0x20, 0)
        return answer[2] == 1
    finally:
        writer.close()


async def test_no_session_is_left(mosquitto: Mosquitto):
    async with somebody(mosquitto, identifier="stays", clean_session=False):
        pass
    async with engine(bus=connection(mosquitto)) as it:
        config = topic("t", qos="at_least_once", ack="on_delivery")
        said = await taken(it, config, seconds=0.2)

    assert await has_session(mosquitto, "stays")
    assert not await has_session(mosquitto, said.notes[0].split("'")[1])


async def test_what_the_broker_has_kept_comes_with_its_metadata(mosquitto: Mosquitto):
    await publish(mosquitto, "s/kept-value", {"n": 1}, retain=True)

    async with engine(bus=connection(mosquitto)) as it:
        config = topic("s/kept-value", qos="at_least_once", envelope={"type": "merge"})
        said = await taken(it, config, most=1)

    about = said.messages[0]["_meta"]
    assert (about["topic"], about["retain"]) == ("s/kept-value", True)
    assert about["pipeline"] in said.notes[0]
    await publish(mosquitto, "s/kept-value", retain=True)


async def test_a_running_pipeline_with_the_same_input_is_not_cut_off(mosquitto: Mosquitto):
    kept = Kept()
    async with engine(bus=connection(mosquitto)) as it:
        await it.compile(pipeline("p", [topic("s/both")], [], [takes(kept)]))
        async with reading(it, topic("s/both"), most=2) as asking:
            await publish(mosquitto, "s/both", 1, 2)
            assert (await asking).messages == [1, 2]
            await until(lambda: len(kept.batches) == 2)

        assert running(it, "p").failures.total == 0


async def test_a_broker_that_is_not_there_is_told():
    nowhere = MqttConnection.load({"host": "127.0.0.1", "port": 1})
    async with engine(bus=nowhere) as it:
        why = await failed(it, topic("t"), seconds=0.5)

    assert why == "127.0.0.1:1 does not answer: connection refused"


async def test_a_broker_that_hangs_is_told_and_let_go_of(tmp_path: Path):
    with Mosquitto(tmp_path) as server:
        async with engine(bus=connection(server)) as it:
            with server.halted():
                why = await failed(it, topic("t"), seconds=0.5)
                assert it.samples._under_way == {}

    assert why == "nothing that speaks 'mqtt' has answered after 0.5 s"


async def test_a_wrong_credential_is_told_at_once_and_is_in_no_answer(tmp_path: Path):
    with Mosquitto(tmp_path, user="ann", password="open-sesame") as server:
        ours = connection(server, username="ann", password="${PASSWORD}")
        async with engine({"PASSWORD": "close-sesame"}, bus=ours) as it:
            said = await take(it, topic("t"))

    assert isinstance(said, Unread)
    assert server.address in said.reason
    assert "close-sesame" not in str(said)


@pytest.mark.parametrize("is_plain", [True, False])
async def test_tls_that_does_not_fit_is_told_at_once(
    tmp_path: Path, authority: Authority, is_plain: bool
):
    with Mosquitto(tmp_path, tls=None if is_plain else authority) as server:
        async with engine(bus=connection(server, tls=is_plain)) as it:
            why = await failed(it, topic("t"))

    expected = "does not speak TLS" if is_plain else "speaks TLS, and the connection does not"
    assert why == f"{server.address} {expected}"


async def test_a_broker_that_stops_leaves_what_was_read(tmp_path: Path):
    with Mosquitto(tmp_path) as server:
        async with (
            engine(bus=connection(server)) as it,
            reading(it, topic("t"), most=5) as asking,
        ):
            await publish(server, "t", 1, 2)
            await until(lambda: shown(it) == 2)
            server.stop()
            said = await asking

    assert said.messages == [1, 2]
    assert len(said.notes) == 2
    assert said.notes[1].startswith(f"{server.address} ")
