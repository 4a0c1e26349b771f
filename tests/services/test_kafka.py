"""The Kafka of the tests, asked by its client."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from tests.clients import PATIENCE, Gone
from tests.services.authority import Authority
from tests.services.kafka import Kafka
from tests.waiting import until

USERS = {"alice": "open-sesame", "bob": "another"}


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """Keep what the client says of a refusal out of what the tests print."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("aiokafka").setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Wait until no connection is left: a client that is refused does not wait for its own."""
    before = sockets()
    yield
    await until(lambda: sockets() <= before)


def sockets() -> set[str]:
    """Return the sockets that this process holds."""
    held = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that listed them, or closed meanwhile
            held.add(str(descriptor.readlink()))
    return {name for name in held if name.startswith("socket:")}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Kafka]:
    """Give a broker with every listener."""
    with Kafka(tmp_path_factory.mktemp("guarded"), tls=authority, users=USERS) as server:
        yield server


async def sent(address: str, **options: Any) -> int:
    """Send one record to the topic `asked`; return its offset."""
    producer = AIOKafkaProducer(bootstrap_servers=address, **options)
    try:
        await producer.start()
        offset: int = (await producer.send_and_wait("asked", b"a")).offset
    finally:
        await producer.stop()
    return offset


async def taken(server: Kafka, count: int) -> list[bytes]:
    """Return the next records of the group `g`, and commit them."""
    where = {"bootstrap_servers": server.bootstrap, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer("kept", group_id="g", enable_auto_commit=False, **where) as reader:
        async with asyncio.timeout(PATIENCE):
            values = [(await reader.getone()).value for _ in range(count)]
            await reader.commit()
        return values


def trusting(authority: Authority, own: Authority | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts one authority and has the certificate of one."""
    context = ssl.create_default_context(cafile=authority.ca_file)
    if own is not None:
        context.load_cert_chain(own.client_cert_file, own.client_key_file)
    return context


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    """Return the options of a client that signs in."""
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


@pytest.mark.long
async def test_records_and_offsets_survive_a_killed_broker(tmp_path: Path) -> None:
    with Kafka(tmp_path) as server:
        server.create_topic("kept", 1)
        async with AIOKafkaProducer(bootstrap_servers=server.bootstrap) as producer:
            for value in (b"a", b"b", b"c"):
                await producer.send_and_wait("kept", value)
        assert await taken(server, 2) == [b"a", b"b"]

        server.kill()
        server.restart()

        assert await taken(server, 1) == [b"c"]


@pytest.mark.long
async def test_a_topic_has_the_partitions_that_were_asked_for(kafka: Kafka) -> None:
    kafka.create_topic("six", 6)

    async with AIOKafkaConsumer("six", bootstrap_servers=kafka.bootstrap) as reader:
        assert reader.partitions_for_topic("six") == {0, 1, 2, 3, 4, 5}
    with pytest.raises(Gone, match="the topic 'six' was not created: Kafka's error 36"):
        kafka.create_topic("six", 6)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_users_get_in_by_every_mechanism_and_nobody_else(
    guarded: Kafka, authority: Authority, mechanism: str
) -> None:
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        address = guarded.bootstrap_for(protocol)
        options = {"security_protocol": protocol, "ssl_context": trusting(authority)}
        for user, password in USERS.items():
            assert await sent(address, **options, **login(mechanism, user, password)) >= 0
        with pytest.raises(KafkaConnectionError):
            await sent(address, **options, **login(mechanism, "alice", "wrong"))


@pytest.mark.long
async def test_tls_is_for_whoever_trusts_the_authority(
    guarded: Kafka, authority: Authority, tmp_path: Path
) -> None:
    address = guarded.bootstrap_for("SSL")
    stranger = Authority(tmp_path)

    assert await sent(address, security_protocol="SSL", ssl_context=trusting(authority)) >= 0
    with pytest.raises(KafkaConnectionError):
        await sent(address, security_protocol="SSL", ssl_context=trusting(stranger))
    with pytest.raises(KafkaConnectionError):
        await sent(address)


@pytest.mark.long
async def test_mutual_tls_wants_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    extra = ["message.max.bytes=2000"]
    with Kafka(tmp_path / "kafka", tls=authority, mutual=True, extra=extra) as server:
        address = server.bootstrap_for("SSL")
        known = trusting(authority, authority)
        assert await sent(address, security_protocol="SSL", ssl_context=known) == 0
        for context in (trusting(authority), trusting(authority, stranger)):
            with pytest.raises(KafkaConnectionError):
                await sent(address, security_protocol="SSL", ssl_context=context)
