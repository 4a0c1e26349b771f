"""A broker that can never be used as configured refuses the pipeline, soon and without the secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST
from tests.promises import promise
from tests.server import run, serving, written
from tests.services.authority import Authority
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.redis import Redis
from tests.stopwatch import Stopwatch
from tests.whole.brokers.kinds.every import EVERY, NATS
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.linking import create, linked

pytestmark = pytest.mark.long

USER, RIGHT, WRONG = "alice", "open-sesame", "shut-sesame"
SECRETS = {"RIGHT": RIGHT, "WRONG": WRONG}
MOST_SECONDS = 6.0
START_SECONDS = 3.0
"""What the command takes until it connects, on a busy machine."""


class Sites:
    """Of each kind a server that anybody may use in plaintext, and one that asks for everything."""

    def __init__(self, plain: list[Any], guarded: list[Any], ours: Authority, other: Authority):
        self.plain = dict(zip(EVERY, plain, strict=True))
        self.guarded = dict(zip(EVERY, guarded, strict=True))
        self._ours = {"tls": True, "ca_file": str(ours.ca_file)}
        self._other = {"tls": True, "ca_file": str(other.ca_file)}

    def right(self, kind: Kind) -> Json:
        """Return a connection that works."""
        return kind.connection(self.guarded[kind], user=USER, password="${RIGHT}", **self._ours)

    def wrong_credential(self, kind: Kind) -> Json:
        return kind.connection(self.guarded[kind], user=USER, password="${WRONG}", **self._ours)

    def wrong_authority(self, kind: Kind) -> Json:
        return kind.connection(self.guarded[kind], user=USER, password="${RIGHT}", **self._other)

    def tls_to_plaintext(self, kind: Kind) -> Json:
        return kind.connection(self.plain[kind], **self._ours)

    def plaintext_to_tls(self, kind: Kind) -> Json:
        return kind.connection(self.guarded[kind], user=USER, password="${RIGHT}")


Making = Callable[[Sites, Kind], Json]
NOT_LET_IN = "refuses the credential|does not let the client in|turns the connection away|WRONGPASS"
CASES: dict[Making, str] = {
    Sites.wrong_credential: NOT_LET_IN,
    Sites.wrong_authority: "is not trusted",
    Sites.tls_to_plaintext: "does not speak TLS",
    Sites.plaintext_to_tls: "speaks TLS",
}
OF_NATS: dict[Making, str] = {
    Sites.tls_to_plaintext: "does not ask for TLS, and the connection is not made without",
    Sites.plaintext_to_tls: "asks for TLS, and the connection is without",
}
"""A server of NATS speaks first, and says in plaintext whether it wants TLS."""


def refusal(case: Making, kind: Kind) -> str:
    """Return the words, as a pattern, with which a pipeline of a kind is refused."""
    return OF_NATS.get(case, CASES[case]) if kind is NATS else CASES[case]


EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


@pytest.fixture(scope="module")
def sites(
    authority: Authority,
    kafka: Kafka,
    mosquitto: Mosquitto,
    nats_server: Nats,
    redis_server: Redis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sites]:
    """Give the servers."""
    other = Authority(tmp_path_factory.mktemp("other"))
    with ExitStack() as running:
        guarded = [
            running.enter_context(
                kind.guarded(tmp_path_factory.mktemp(kind.name), authority, USER, RIGHT)
            )
            for kind in EVERY
        ]
        yield Sites([kafka, mosquitto, nats_server, redis_server], guarded, authority, other)


def using(kind: Kind) -> list[Json]:
    """Return a pipeline that reads from a broker and one that writes to it."""
    reading, writing = kind.input(kind.name, "in"), kind.output(kind.name, "out")
    return [
        {"id": f"from {kind}", "inputs": [reading], "outputs": [{"type": "stdout"}]},
        {"id": f"to {kind}", "inputs": [{"type": "http"}], "outputs": [writing]},
    ]


EACH = [kind for kind in EVERY for _ in using(kind)]
PIPELINES = [pipeline for kind in EVERY for pipeline in using(kind)]


def connections(sites: Sites, case: Making) -> dict[str, Json]:
    return {kind.name: case(sites, kind) for kind in EVERY}


def test_with_everything_right_it_runs(tmp_path: Path, sites: Sites) -> None:
    options = linked(tmp_path, connections(sites, Sites.right), SECRETS)
    with serving(tmp_path, PIPELINES, *options) as server:
        told = server.get("/api/pipelines").value

        assert [each["status"] for each in told] == ["running"] * len(PIPELINES)
        assert server.metric("headrace_failures_total") == 0


@EVERY_CASE
def test_a_server_is_not_started_and_tells_every_refusal(
    tmp_path: Path, sites: Sites, case: Making
) -> None:
    options = linked(tmp_path, connections(sites, case), SECRETS)
    config = str(written(tmp_path, PIPELINES))
    watch = Stopwatch()

    ended = run(tmp_path, "serve", "--config", config, "--listen", f"{HOST}:0", *options)

    took = watch.seconds
    told = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert took < MOST_SECONDS + START_SECONDS
    assert len(told) == len(PIPELINES)
    for line, kind in zip(told, EACH, strict=True):
        assert re.search(refusal(case, kind), line)
    assert all(secret not in ended.stderr for secret in SECRETS.values())


@promise("delivery.case.refused")
@EVERY_CASE
def test_a_pipeline_that_is_posted_is_refused(tmp_path: Path, sites: Sites, case: Making) -> None:
    options = linked(tmp_path, connections(sites, case), SECRETS)
    with serving(tmp_path, [], *options) as server:
        for pipeline, kind in zip(PIPELINES, EACH, strict=True):
            watch = Stopwatch()
            answer = create(server, pipeline)
            took = watch.seconds

            assert took < MOST_SECONDS
            assert answer.status == 422
            assert re.search(refusal(case, kind), answer.value["error"])
            assert all(secret not in answer.body.decode() for secret in SECRETS.values())
        assert server.get("/api/pipelines").value == []
        assert all(secret not in server.told() for secret in SECRETS.values())
