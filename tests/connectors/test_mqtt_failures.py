"""Of which class the failures of an `mqtt` output are, and which messages of a batch are confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import Unreachable
from headrace.connectors.mqtt import packets
from headrace.connectors.mqtt.connection import Limits
from headrace.connectors.mqtt.sink import MqttSink, Publisher
from tests.connected import started
from tests.mqtt_sides import connection, context, sink
from tests.promises import promise
from tests.services.mosquitto import Mosquitto
from tests.waiting import until

QOS = ["at_most_once", "at_least_once", "exactly_once"]
SOON = Limits(write_seconds=1.0, at_once=2)


async def failure(opened: MqttSink, batch: Batch) -> Unreachable:
    """Return why a batch is not written."""
    with pytest.raises(Unreachable) as failed:
        await opened.write(batch)
    return failed.value


def publishing(opened: MqttSink, monkeypatch: pytest.MonkeyPatch, before: Any) -> None:
    """Do something before the batch goes on with the message `3`."""
    publish = Publisher.publish

    def published(client: Publisher, payloads: Sequence[bytes]) -> None:
        if payloads[0] == b"3":
            before()
        publish(client, payloads)

    monkeypatch.setattr(Publisher, "publish", published)


@promise("mqtt.output.fails.connection")
@pytest.mark.parametrize("qos", QOS)
async def test_a_broker_that_is_gone_is_unavailable(tmp_path: Path, qos: str) -> None:
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "gone", SOON, qos=qos)) as opened:
            server.kill()
            await until(lambda: bool(ctx.failures))
            failed = await failure(opened, [1, 2])

    assert (failed.failure, [*failed.done]) == ("unavailable", [])
    assert {*ctx.classes} == {"unavailable"}


@promise("mqtt.output.fails.connection")
@pytest.mark.parametrize("qos", QOS[1:])
async def test_what_was_confirmed_before_the_broker_was_gone_is_done(
    tmp_path: Path, qos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "lost", SOON, qos=qos)) as opened:
            publishing(opened, monkeypatch, server.kill)
            failed = await failure(opened, [1, 1, 3, 3, 3])

    assert str(failed).endswith("; some messages of the batch are confirmed")
    assert (failed.failure, failed.done) == ("unavailable", [0, 1])
    assert {*ctx.classes} == {"unavailable"}


@promise("mqtt.output.fails.not_authorized")
@pytest.mark.parametrize("qos", QOS)
async def test_a_password_that_is_changed_later_is_misconfigured(tmp_path: Path, qos: str) -> None:
    with Mosquitto(tmp_path, user="me", password="s3cret") as server:
        ctx = context(server, username="me", password="s3cret")
        async with started(sink(ctx, "changed", Limits(write_seconds=2.0), qos=qos)) as opened:
            server.change_password("an0ther-one")
            await until(lambda: bool(ctx.failures))
            failed = await failure(opened, [1])
            refused = {*zip(ctx.failures, ctx.classes, strict=True)}

    said = f"{server.address} does not let the client in: not authorized"
    assert failed.failure == "misconfigured"
    assert (said, "misconfigured") in {*refused, (str(failed), failed.failure)}


@promise("mqtt.output.fails.unconfirmed")
@pytest.mark.parametrize("qos", QOS[1:])
async def test_what_a_broker_takes_and_does_not_confirm_is_unclear(
    tmp_path: Path, qos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Mosquitto(tmp_path) as server:
        halted = server.halted()
        async with started(sink(context(server), "mute", SOON, qos=qos)) as opened:
            publishing(opened, monkeypatch, halted.__enter__)
            failed = await failure(opened, [1, 1, 3, 3, 3])
            halted.__exit__(None, None, None)

    assert str(failed) == (
        f"{server.address} does not confirm what is published; some messages of the batch are confirmed"
    )
    assert (failed.failure, failed.done) == ("unclear", [0, 1])


async def test_unconfirmed_messages_are_known_by_their_places_also_where_packets_count_anew() -> (
    None
):
    ctx = context(Mosquitto(Path()))
    access = connection(Mosquitto(Path())).access(ctx)
    client = Publisher(access, "id", topic="t", qos=1, retain=False)
    confirm = client.handlers()[packets.PUBACK]
    client._last_packet = packets.PACKET_IDS - 2

    client.publish([b"1"] * 4)
    assert client.unconfirmed == [0, 1, 2, 3]
    for packet in (packets.PACKET_IDS - 1, 1):
        confirm(0, memoryview(packet.to_bytes(2, "big")))

    assert client.unconfirmed == [1, 3]
    await client.close()
