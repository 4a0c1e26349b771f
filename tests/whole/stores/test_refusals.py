"""A store that can never be used as configured refuses the pipeline, soon and without the secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST
from tests.promises import promise
from tests.server import run, serving, written
from tests.services.authority import Authority
from tests.services.clickhouse import ClickHouse
from tests.services.opcua import Identity, Opcua
from tests.services.postgres import Postgres
from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.services.server import Service
from tests.stopwatch import Stopwatch
from tests.whole.linking import create, linked
from tests.whole.stores.kinds.kind import COLUMNS, Json

pytestmark = pytest.mark.long

USER, RIGHT, WRONG = "alice", "open-sesame", "shut-sesame"
SECRETS = {"RIGHT": RIGHT, "WRONG": WRONG, "KEY": KEY, "SECRET": SECRET}
MOST_SECONDS = 6.0
START_SECONDS = 12.0
"""What the command takes until it has every driver and connects, on a busy machine."""
STARTS = 3
"""Who does not answer within 5 s is no refusal: of thirty at once that may be one on a busy machine."""
PLACE = re.compile(r"config\.json:.*?pipelines\[(\d+)\]").search
"""Of a line that tells of a refusal, which pipeline it is about."""


@dataclass(frozen=True)
class Sites:
    """Of each kind a server without TLS, and one with it."""

    postgres: Postgres
    postgres_tls: Postgres
    clickhouse: ClickHouse
    clickhouse_tls: ClickHouse
    s3: S3
    s3_tls: S3
    opcua: Opcua
    opcua_secured: Opcua
    ca_file: str
    other_ca_file: str
    identity: Identity
    stranger: Identity

    def connections(self) -> dict[str, Json]:
        """Return connections of every kind, right ones and wrong ones, by what is wrong."""
        return {
            **self._of_postgres(),
            **self._of_clickhouse(),
            **self._of_s3(),
            **self._of_opcua(),
        }

    def _of_postgres(self) -> dict[str, Json]:
        login = {
            "type": "postgres",
            "database": "postgres",
            "user": "postgres",
            "password": "${RIGHT}",
        }
        plain = {**login, "host": HOST, "port": self.postgres.port}
        tls = {**login, "host": HOST, "port": self.postgres_tls.port, "tls": True}
        return {
            "postgres": {**tls, "ca_file": self.ca_file},
            "postgres, wrong password": {**plain, "password": "${WRONG}"},
            "postgres, wrong user": {**plain, "user": "nobody"},
            "postgres, wrong database": {**plain, "database": "nowhere"},
            "postgres, wrong authority": {**tls, "ca_file": self.other_ca_file},
            "postgres, TLS to plaintext": {**plain, "tls": True, "ca_file": self.ca_file},
            "postgres, plaintext to TLS": {**tls, "tls": False},
        }

    def _of_clickhouse(self) -> dict[str, Json]:
        login = {"type": "clickhouse", "database": "default", "user": USER, "password": "${RIGHT}"}
        plain = {**login, "url": self.clickhouse.url, "allow_http": True}
        tls = {**login, "url": self.clickhouse_tls.url, "ca_file": self.ca_file}
        turned = {"url": swapped(self.clickhouse.url)}
        return {
            "clickhouse": tls,
            "clickhouse, wrong password": {**plain, "password": "${WRONG}"},
            "clickhouse, wrong user": {**plain, "user": "nobody"},
            "clickhouse, wrong database": {**plain, "database": "nowhere"},
            "clickhouse, wrong authority": {**tls, "ca_file": self.other_ca_file},
            "clickhouse, TLS to plaintext": {**tls, **turned},
            "clickhouse, plaintext to TLS": {**plain, "url": swapped(self.clickhouse_tls.url)},
        }

    def _of_s3(self) -> dict[str, Json]:
        keys = {"type": "s3", "access_key_id": "${KEY}", "secret_access_key": "${SECRET}"}
        plain = {**keys, "bucket": BUCKET, "endpoint": self.s3.url, "allow_http": True}
        tls = {**keys, "bucket": BUCKET, "endpoint": self.s3_tls.url, "ca_file": self.ca_file}
        return {
            "s3": tls,
            "s3, wrong key": {**plain, "access_key_id": "${WRONG}"},
            "s3, wrong secret": {**plain, "secret_access_key": "${WRONG}"},
            "s3, wrong bucket": {**plain, "bucket": "nowhere"},
            "s3, wrong authority": {**tls, "ca_file": self.other_ca_file},
            "s3, TLS to plaintext": {**tls, "endpoint": swapped(self.s3.url)},
            "s3, plaintext to TLS": {**plain, "endpoint": swapped(self.s3_tls.url)},
        }

    def _of_opcua(self) -> dict[str, Json]:
        login = {"username": USER, "password": "${RIGHT}"}
        plain = {"type": "opcua", "endpoint": self.opcua.url, **login}
        secured = {
            "type": "opcua",
            "endpoint": self.opcua_secured.url,
            "security_policy": "Basic256Sha256",
            "certificate": str(self.identity.certificate),
            "private_key": str(self.identity.private_key),
        }
        strange = {
            "certificate": str(self.stranger.certificate),
            "private_key": str(self.stranger.private_key),
        }
        pinned = {"server_certificate": str(self.stranger.certificate)}
        return {
            "opcua": secured,
            "opcua, wrong password": {**plain, "password": "${WRONG}"},
            "opcua, no password": {"type": "opcua", "endpoint": self.opcua.url},
            "opcua, wrong policy": {**secured, "endpoint": self.opcua.url},
            "opcua, wrong certificate": {**secured, **strange},
            "opcua, wrong certificate of the server": {**secured, **pinned},
            "opcua, no policy": {"type": "opcua", "endpoint": self.opcua_secured.url},
        }


NOT_TRUSTED = "is not trusted"
NO_TLS, TLS = "does not speak TLS", "speaks TLS, and the connection does not"
REFUSALS = {
    "postgres, wrong password": 'password authentication failed for user "postgres"',
    "postgres, wrong user": 'password authentication failed for user "nobody"',
    "postgres, wrong database": 'database "nowhere" does not exist',
    "postgres, wrong authority": NOT_TRUSTED,
    "postgres, TLS to plaintext": NO_TLS,
    "postgres, plaintext to TLS": "no encryption",
    "clickhouse, wrong password": "AUTHENTICATION_FAILED",
    "clickhouse, wrong user": "AUTHENTICATION_FAILED",
    "clickhouse, wrong database": "Database nowhere does not exist",
    "clickhouse, wrong authority": NOT_TRUSTED,
    "clickhouse, TLS to plaintext": NO_TLS,
    "clickhouse, plaintext to TLS": TLS,
    "s3, wrong key": "InvalidAccessKeyId",
    "s3, wrong secret": "SignatureDoesNotMatch",
    "s3, wrong bucket": "bucket 'nowhere' .*NoSuchBucket",
    "s3, wrong authority": NOT_TRUSTED,
    "s3, TLS to plaintext": NO_TLS,
    "s3, plaintext to TLS": TLS,
    "opcua, wrong password": "does not let in this user and password",
    "opcua, no password": "lets nobody in without a user",
    "opcua, wrong policy": "has no endpoint with the security 'Basic256Sha256",
    "opcua, wrong certificate": "does not take our certificate",
    "opcua, wrong certificate of the server": "shows another certificate",
    "opcua, no policy": "has no endpoint with the security 'None'",
}
"""What is said of each, as a pattern."""
RIGHT_ONES = ("postgres", "clickhouse", "s3", "opcua")

PARTS = {
    "postgres": {"table": "readings", "columns": COLUMNS},
    "clickhouse": {"table": "readings", "columns": COLUMNS},
    "s3": {"prefix": "readings", "rotate": {"max_rows": 1}},
    "opcua": {"nodes": [{"node_id": "ns=2;s=Temp"}]},
}
"""What is written or read of each kind."""


def swapped(url: str) -> str:
    """Return a url with the other scheme of the two."""
    return url.replace("https:", "http:") if "https:" in url else url.replace("http:", "https:")


def using(connection: str) -> Json:
    """Return a pipeline that uses a connection."""
    kind = connection.partition(",")[0]
    used = {"type": kind, "connection": connection, **PARTS[kind]}
    if kind == "opcua":
        return {"id": connection, "inputs": [used], "outputs": [{"type": "stdout"}]}
    return {"id": connection, "inputs": [{"type": "http"}], "outputs": [used]}


@pytest.fixture(scope="module")
def connections(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Json]]:
    """Give the connections to servers that run."""
    folder = tmp_path_factory.mktemp("refusals")
    ours, theirs, stranger = (
        Identity(folder, name, uri=f"urn:headrace:{name}")
        for name in ("ours", "theirs", "stranger")
    )
    secured = ["Basic256Sha256_SignAndEncrypt"]
    login = {"user": USER, "password": RIGHT}
    servers: dict[str, Any] = {
        "postgres": Postgres(folder / "postgres", password=RIGHT),
        "postgres_tls": Postgres(folder / "postgres-tls", password=RIGHT, tls=authority),
        "clickhouse": ClickHouse(folder / "clickhouse", **login),
        "clickhouse_tls": ClickHouse(folder / "clickhouse-tls", **login, tls=authority),
        "s3": S3(folder / "s3"),
        "s3_tls": S3(folder / "s3-tls", tls=authority),
        "opcua": Opcua(folder / "opcua", users={USER: RIGHT}),
        "opcua_secured": Opcua(
            folder / "opcua-secured", identity=theirs, policies=secured, trusts=ours.certificate
        ),
    }
    other = Authority(folder / "other")
    with ExitStack() as running, ThreadPoolExecutor(len(servers)) as beside:
        for server in beside.map(Service.start, servers.values()):
            running.callback(server.kill)
        files = {"ca_file": str(authority.ca_file), "other_ca_file": str(other.ca_file)}
        yield Sites(**servers, **files, identity=ours, stranger=stranger).connections()


def test_with_everything_right_it_runs(tmp_path: Path, connections: dict[str, Json]) -> None:
    options = linked(tmp_path, connections, SECRETS)
    with serving(tmp_path, [*map(using, RIGHT_ONES)], *options) as server:
        told = server.get("/api/pipelines").value

        assert [each["status"] for each in told] == ["running"] * len(RIGHT_ONES)
        assert server.metric("headrace_failures_total") == 0


@promise("delivery.case.refused")
def test_a_server_is_not_started_and_tells_every_refusal(
    tmp_path: Path, connections: dict[str, Json]
) -> None:
    options = linked(tmp_path, connections, SECRETS)
    config = str(written(tmp_path, [*map(using, REFUSALS)]))
    refused = dict[int, str]()
    for _ in range(STARTS):
        watch = Stopwatch()

        ended = run(tmp_path, "serve", "--config", config, "--listen", f"{HOST}:0", *options)

        took = watch.seconds
        assert (ended.returncode, ended.stdout) == (1, "")
        assert took < MOST_SECONDS + START_SECONDS
        refused |= {
            int(found[1]): found.string for found in map(PLACE, ended.stderr.splitlines()) if found
        }
        if len(refused) == len(REFUSALS):
            break
    assert sorted(refused) == [*range(len(REFUSALS))]
    for place, said in enumerate(REFUSALS.values()):
        assert re.search(said, refused[place])
    assert all(secret not in ended.stderr for secret in SECRETS.values())


@promise("delivery.case.refused")
def test_a_pipeline_that_is_posted_is_refused(tmp_path: Path, connections: dict[str, Json]) -> None:
    options = linked(tmp_path, connections, SECRETS)
    with serving(tmp_path, [], *options) as server:
        for connection, said in REFUSALS.items():
            watch = Stopwatch()
            answer = create(server, using(connection))
            took = watch.seconds

            assert answer.status == 422
            assert took < MOST_SECONDS
            assert re.search(said, answer.value["error"])
            assert all(secret not in answer.body.decode() for secret in SECRETS.values())
        assert server.get("/api/pipelines").value == []
        shown = server.get("/api/connections").body.decode()
        assert all(secret not in shown + server.told() for secret in SECRETS.values())
