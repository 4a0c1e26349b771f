"""The MQTT broker of the tests, asked by its client."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiomqtt import Client, MqttError, TLSParameters

from tests.clients import PATIENCE
from tests.services.authority import Authority
from tests.services.mosquitto import SAVING, Mosquitto

# The driver leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Have it collected before the next test, which might not expect it."""
    yield
    gc.collect()


async def asked(server: Mosquitto, **options: Any) -> bool:
    """Connect, and publish what the broker has to confirm."""
    async with asyncio.timeout(PATIENCE), Client(server.host, server.port, **options) as client:
        await client.publish("asked", b"a", qos=1)
    return True


def trusting(authority: Authority, own: Authority | None = None) -> TLSParameters:
    """Return the options of a client that trusts one authority and has the certificate of one."""
    trusted = TLSParameters(ca_certs=str(authority.ca_file))
    if own is None:
        return trusted
    certificate, key = str(own.client_cert_file), str(own.client_key_file)
    return replace(trusted, certfile=certificate, keyfile=key)


def code(granted: Any) -> int:
    """Return what stands in a SUBACK: the granted QoS, or 128."""
    value: int = granted if isinstance(granted, int) else granted.value
    return value


async def queued(server: Mosquitto) -> None:
    """Leave a message at the broker for a client that is away."""
    async with Client(server.host, server.port, identifier="away", clean_session=False) as client:
        await client.subscribe("kept", qos=1)
    async with Client(server.host, server.port) as client:
        await client.publish("kept", b"a", qos=1)


async def fetched(server: Mosquitto) -> Any:
    """Return what was left."""
    away = Client(server.host, server.port, identifier="away", clean_session=False)
    async with asyncio.timeout(PATIENCE), away as client:
        return (await anext(aiter(client.messages))).payload


@pytest.mark.long
async def test_what_a_client_has_missed_survives_an_orderly_stop(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as server:
        await queued(server)

        server.restart()

        assert await fetched(server) == b"a"


@pytest.mark.long
async def test_what_was_saved_survives_a_killed_broker(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, extra=SAVING) as server:
        await queued(server)

        # It saves when it has answered, so once it answers again it has saved.
        assert server.answers()
        server.kill()
        server.restart()

        assert await fetched(server) == b"a"


async def test_a_user_gets_in_and_nobody_else(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, user="alice", password="open-sesame") as server:
        assert await asked(server, username="alice", password="open-sesame")
        for credentials in ({}, {"username": "alice", "password": "wrong"}):
            with pytest.raises(MqttError, match="Not authorized"):
                await asked(server, **credentials)


async def test_a_topic_that_its_list_does_not_name_is_not_read(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, acl="topic write closed\ntopic open\n") as server:
        async with asyncio.timeout(PATIENCE), Client(server.host, server.port) as client:
            await client.subscribe("#", qos=1)
            await client.publish("closed", b"a", qos=1)
            await client.publish("open", b"b", qos=1)

            assert (await anext(aiter(client.messages))).payload == b"b"


async def test_a_filter_can_be_refused(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, refuses=["closed/#"]) as server:
        async with asyncio.timeout(PATIENCE), Client(server.host, server.port) as client:
            [granted] = await client.subscribe("open/#", qos=1)
            [refused] = await client.subscribe("closed/#", qos=1)

    assert (code(granted), code(refused)) == (1, 128)


async def test_tls_is_for_whoever_trusts_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Mosquitto(tmp_path / "mosquitto", tls=authority) as server:
        assert await asked(server, tls_params=trusting(authority))
        with pytest.raises(MqttError, match="CERTIFICATE_VERIFY_FAILED"):
            await asked(server, tls_params=trusting(stranger))


@pytest.mark.long
async def test_mutual_tls_wants_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with Mosquitto(tmp_path / "mosquitto", tls=authority, mutual=True) as server:
        assert await asked(server, tls_params=trusting(authority, authority))
        for params in (trusting(authority), trusting(authority, stranger)):
            # The driver does not hear of a refusal that comes when its side of TLS is done.
            with pytest.raises(MqttError, match="Operation timed out"):
                await asked(server, tls_params=params, timeout=0.5)
        assert "peer did not return a certificate" in server.log()
        assert "certificate verify failed" in server.log()
