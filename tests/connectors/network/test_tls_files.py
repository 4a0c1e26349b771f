"""The files of TLS are read before a build, off the loop, and none of them is large."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import MOST_BYTES
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.errors import BuildRefused, Refused
from headrace.compiler.runtime.dependencies import digest, prepare
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.clickhouse import ClickHouseConnection, ClickHouseOutput
from headrace.connectors.dummy import DummyInput
from headrace.connectors.kafka import KafkaConnection, KafkaOutput
from headrace.connectors.mqtt import MqttConnection, MqttOutput
from headrace.connectors.nats import NatsConnection, NatsOutput
from headrace.connectors.network.tls import TlsFiles
from headrace.connectors.opcua import OpcuaConnection
from headrace.connectors.postgres import PostgresConnection, PostgresOutput
from headrace.connectors.redis import RedisConnection, RedisOutput
from headrace.connectors.s3 import S3Connection, S3Output
from tests.doubles import StubContext
from tests.services.authority import Authority

NOBODY = "127.0.0.1:1"
STORE = {"bucket": "b-b-b", "access_key_id": "a", "secret_access_key": "b"}
BASE = {"host": "127.0.0.1", "port": 1, "database": "d", "user": "u", "password": "p"}
HOUSE = {"url": f"https://{NOBODY}", "database": "d", "user": "u", "password": "p"}
KINDS: list[tuple[type[Connection], dict[str, Any], Any, dict[str, Any]]] = [
    (KafkaConnection, {"brokers": NOBODY, "tls": True}, KafkaOutput, {"topic": "t"}),
    (MqttConnection, {"host": "127.0.0.1", "port": 1, "tls": True}, MqttOutput, {"topic": "t"}),
    (NatsConnection, {"urls": f"tls://{NOBODY}"}, NatsOutput, {"subject": "s"}),
    (RedisConnection, {"url": f"rediss://{NOBODY}"}, RedisOutput, {"channel": "c"}),
    (PostgresConnection, {**BASE, "tls": True}, PostgresOutput, {"table": "t"}),
    (ClickHouseConnection, HOUSE, ClickHouseOutput, {"table": "t"}),
    (
        S3Connection,
        {**STORE, "endpoint": f"https://{NOBODY}"},
        S3Output,
        {"prefix": "", "rotate": {"max_rows": 1}},
    ),
]
IDS = [connection.kind for connection, *_ in KINDS]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep the names of the threads that make contexts."""
    names: list[str] = []
    made = TlsFiles.made

    def kept(self: TlsFiles, base: Path) -> ssl.SSLContext:
        names.append(threading.current_thread().name)
        return made(self, base)

    monkeypatch.setattr(TlsFiles, "made", kept)
    return names


async def refused(
    kind: type[Connection], given: dict[str, Any], output: Any, base: Path
) -> list[tuple[str, str]]:
    """Create a pipeline that writes there; return why it is refused."""
    connections = {"there": kind.load({**given, "ca_file": "ca.pem"})}
    engine = Engine(Clock(asyncio.get_running_loop()), connections=connections, base=base)
    try:
        await engine.compile(
            PipelineConfig(id="p", inputs=(DummyInput(duration=3600),), outputs=(output,))
        )
    except Refused as cause:
        return [(each.code, each.message) for each in cause.diagnostics]
    finally:
        await engine.close()
    return []


@pytest.mark.parametrize(("kind", "given", "output", "rest"), KINDS, ids=IDS)
async def test_no_file_of_tls_is_read_on_the_loop(
    kind: type[Connection],
    given: dict[str, Any],
    output: Any,
    rest: dict[str, Any],
    tmp_path: Path,
    threads: list[str],
) -> None:
    (tmp_path / "ca.pem").write_text("none")

    told = await refused(kind, given, output.load({"connection": "there", **rest}), tmp_path)

    assert told == [("unreadable-file", "'ca.pem' holds no certificate in PEM format")]
    assert len(threads) == 1
    assert threads[0] != threading.main_thread().name


@pytest.mark.parametrize(("kind", "given", "output", "rest"), KINDS, ids=IDS)
async def test_a_file_of_more_than_one_mib_is_refused_unread(
    kind: type[Connection],
    given: dict[str, Any],
    output: Any,
    rest: dict[str, Any],
    tmp_path: Path,
) -> None:
    (tmp_path / "ca.pem").touch()
    os.truncate(tmp_path / "ca.pem", 2**40)  # as large as it says, and nothing is in it

    told = await refused(kind, given, output.load({"connection": "there", **rest}), tmp_path)

    assert told == [
        (
            "too-large",
            "'ca.pem' has 1,099,511,627,776 bytes, and a file of certificates has at most 1,048,576",
        )
    ]


async def test_what_is_read_ahead_is_known_by_what_the_files_held(authority: Authority) -> None:
    base, file = authority.ca_file.parent, authority.ca_file
    connection = RedisConnection.load({"url": f"rediss://{NOBODY}", "ca_file": file.name})
    writes = RedisOutput.load({"connection": "there", "channel": "c"})
    config = PipelineConfig(id="p", inputs=(DummyInput(duration=3600),), outputs=(writes,))

    readings = await prepare(
        [config, config], {"there": connection}, base, Clock(asyncio.get_running_loop())
    )

    [read] = readings.values()
    assert isinstance(read.made, ssl.SSLContext)
    assert read.files == {file.name: (file, digest(file))}


def test_a_file_that_has_grown_beyond_what_is_read_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * MOST_BYTES)
    before = digest(file)
    with open(file, "ab") as longer:
        longer.write(b"x")

    assert digest(file) != before


async def test_a_file_of_opc_ua_that_is_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.pem").write_bytes(b"x" * (MOST_BYTES + 1))
    files = dict.fromkeys(("certificate", "private_key", "server_certificate"), "large.pem")
    connection = OpcuaConnection.load(
        {"endpoint": f"opc.tcp://{NOBODY}", "security_policy": "Basic256Sha256", **files}
    )

    with pytest.raises(BuildRefused, match=r"'large\.pem' has 1,048,577 bytes"):
        connection.server(StubContext(base=tmp_path))
