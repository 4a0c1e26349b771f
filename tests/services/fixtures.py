"""The plain servers as fixtures: each started when a test first wants it, one for each worker.

Tests that use them share them, so they choose their own topics, channels and keys. A test that
stops, kills or configures a server starts its own: `with Redis(tmp_path, password="...") as server`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.authority import Authority
from tests.services.clickhouse import OURS, WHICH, Access, ClickHouse
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.oidc import Oidc
from tests.services.opcua import Opcua
from tests.services.postgres import Postgres
from tests.services.redis import Redis
from tests.services.s3 import S3


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """Give a Redis without credentials."""
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    """Give a NATS server without credentials."""
    with Nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="session")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """Give an MQTT broker without credentials."""
    with Mosquitto(tmp_path_factory.mktemp("mosquitto")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Give a Kafka broker without credentials."""
    with Kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """Give a PostgreSQL server."""
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """Give an object store with one bucket."""
    with S3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give the authority that clients are to trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session", params=[Access.given()], ids=[WHICH])
def clickhouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Access]:
    """Give the ClickHouse that the environment names, or its engine behind a front of ours.

    Which of the two it is stands in the name of each test.
    """
    if request.param is not None:
        yield request.param
        return
    folder = tmp_path_factory.mktemp("clickhouse")
    with ClickHouse(folder, user="writer", password="open-sesame") as server:
        yield server.access


@pytest.fixture(scope="session", params=[None], ids=[OURS])
def front_of_ours() -> None:
    """Have the name of a test say that the engine of its ClickHouse is real and the front is ours."""


@pytest.fixture(scope="session")
def opcua_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opcua]:
    """Give an OPC UA server that lets anybody in."""
    with Opcua(tmp_path_factory.mktemp("opcua")) as server:
        yield server


@pytest.fixture(scope="session")
def identity_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oidc]:
    """Give an identity provider with some users and programs."""
    with Oidc(tmp_path_factory.mktemp("oidc")) as server:
        yield server
