"""A server whose pipelines fail in every way: nobody who listens to it hears a credential."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from headrace.web.resources import ENDPOINTS, STREAMS
from headrace.web.resources.events import EVENTS_PATH
from tests.clients import HOST, Answer
from tests.forked import run, serving
from tests.server import Server, settled, written
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.redis import Redis
from tests.services.server import Service
from tests.web.auth.people import basic, bearer, cookie, made, session_of
from tests.whole.secrecy import (
    DOOR,
    FILED,
    INLINE,
    JSON_HEADERS,
    LOGIN,
    NAMED,
    TOKEN,
    USER,
    VALUES,
    WRONG,
    Told,
    echo,
    leaks,
)

BEARER = {"type": "bearer", "token": "${DEEP_TOKEN}"}
HEADER = {"type": "header", "name": "X-Key", "value": "${DEEP_TOKEN}/${FILED_KEY}"}


def config(at: str) -> list[dict[str, Any]]:
    """Return pipelines, each with another way to fail."""
    door = {"type": "bearer", "token": "${DOOR_KEY}"}
    ways: Mapping[str, Any] = {
        "bearer": {"url": f"http://{at}/500", "auth": BEARER},
        "refused": {"url": f"http://{at}/401", "auth": BEARER},
        "moved": {"url": f"http://{at}/302", "auth": HEADER},
        "followed": {"url": f"http://{at}/307", "auth": HEADER},
        "header": {"url": f"http://{at}/400", "auth": HEADER, "body": "message"},
        "page": {"url": f"http://{at}/page/403", "auth": BEARER},
        "inline": {"url": f"http://app:{INLINE}@{at}/403"},
        "inline-page": {"url": f"http://app:{INLINE}@{at}/page/500"},
        "inline-moved": {"url": f"http://app:{INLINE}@{at}/307"},
        "nobody": {"url": "http://127.0.0.1:9/", "auth": BEARER},
        "nowhere": {"url": f"http://app:{INLINE}@nowhere.invalid/"},
    }
    given = [{"type": "http", "auth": door}]
    outputs = [
        {"id": id, "inputs": given, "outputs": [{"type": "http", **way}]}
        for id, way in ways.items()
    ]
    asking = [{"type": "http", "verb": "POST", "url": f"http://app:{INLINE}@{at}/418"}]
    return [*outputs, {"id": "asking", "inputs": given, "transforms": asking}]


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fill environment and secrets file; return the options."""
    monkeypatch.setenv("DEEP_TOKEN", TOKEN)
    monkeypatch.setenv("DOOR_KEY", DOOR)
    (tmp_path / "secrets.json").write_text(json.dumps({"FILED_KEY": FILED, "UNUSED": "x"}))
    return ["--secrets", "secrets.json", "--data-dir", "data", "--debug"]


def test_what_fails_shows_no_credential_to_anybody(tmp_path: Path, secrets: list[str]) -> None:
    disk = {"type": "file", "root": "data/${DEEP_TOKEN}"}
    (tmp_path / "config.connections.json").write_text(json.dumps({"disk": disk}))
    unresolved = {"type": "bearer", "token": "${NO_SUCH_NAME}${DEEP_TOKEN}"}
    with echo() as at, serving(tmp_path, config(at), *secrets) as server:
        told = Told(server)
        for pipeline in config(at):
            path = f"/api/pipelines/{pipeline['id']}/messages"
            assert told.ask("POST", path, {"n": 1}, Authorization="Bearer no").status == 401
            for _ in range(3):
                assert (
                    told.ask("POST", path, {"n": 1}, Authorization=f"Bearer {DOOR}").status == 202
                )
        dry = {"messages": [1], "transforms": config(at)[-1]["transforms"]}
        assert told.ask("POST", "/api/pipelines/dry-run", dry).value["outcome"] == "failed"
        for auth in (unresolved, {"type": "bearer", "token": {"${DEEP_TOKEN}": 1}}):
            refused = {"id": "r", "inputs": [{"type": "http", "auth": auth}]}
            assert told.ask("POST", "/api/pipelines", refused).status == 422
        for row in config(at):
            _wait_for_failure(server, row["id"])
        for row in config(at):
            told.ask_everything(pipeline_id=row["id"])
        told.ask("DELETE", "/api/pipelines/bearer")
        history = told.history()

    for who in ("stderr", EVENTS_PATH):
        texts = "".join(text for teller, text in history if teller == who)
        assert "${DEEP_TOKEN}" in texts
        assert "no: {" in texts, "what servers answer is told"
    assert leaks(history) == []


def _wait_for_failure(server: Server, pipeline: str) -> None:
    """Wait until a pipeline has said that it failed."""
    server.err.find(re.compile(rf"pipeline '{pipeline}' (outputs|transforms)"))


class Redised:
    """What differs between the kinds of brokers, for Redis."""

    reads: ClassVar = {"channel": "things"}
    writes: ClassVar = {"channel": "things"}
    is_in_url = True

    def started(self, folder: Path) -> Service:
        """Return a broker that wants a user name and a password."""
        return Redis(folder, user=USER, password=TOKEN)

    def connection(self, broker: Any, password: str) -> dict[str, Any]:
        """Return a connection to it, with a reference to a password."""
        return {"type": "redis", "url": f"redis://${{BUS_USER}}:{password}@{broker.address}"}


class Natsed(Redised):
    """For NATS."""

    reads: ClassVar = {"subject": "things"}
    writes: ClassVar = {"subject": "things"}

    def started(self, folder: Path) -> Service:
        return Nats(folder, user=USER, password=TOKEN)

    def connection(self, broker: Any, password: str) -> dict[str, Any]:
        first = f"nats://${{BUS_USER}}:{password}@{broker.address}"
        return {"type": "nats", "urls": f"{first},{first}"}


class Mqtted(Redised):
    """For MQTT."""

    reads: ClassVar = {"topic": "things"}
    writes: ClassVar = {"topic": "things"}
    is_in_url = False

    def started(self, folder: Path) -> Service:
        return Mosquitto(folder, user=USER, password=TOKEN)

    def connection(self, broker: Any, password: str) -> dict[str, Any]:
        signing_in = {"username": "${BUS_USER}", "password": password}
        return {"type": "mqtt", "host": broker.host, "port": broker.port, **signing_in}


class Kafkaed(Mqtted):
    """For Kafka."""

    reads: ClassVar = {"topic": "things", "group": "all"}
    writes: ClassVar = {"topic": "things"}

    def started(self, folder: Path) -> Service:
        return Kafka(folder, users={USER: TOKEN})

    def connection(self, broker: Any, password: str) -> dict[str, Any]:
        signing_in = {"username": "${BUS_USER}", "password": password}
        brokers = broker.bootstrap_for("SASL_PLAINTEXT")
        return {"type": "kafka", "brokers": brokers, "sasl_mechanism": "PLAIN", **signing_in}


@pytest.mark.long
@pytest.mark.parametrize("kind", [Redised, Natsed, Mqtted, Kafkaed])
def test_a_broker_that_refuses_or_goes_away_gives_no_credential_away(
    tmp_path: Path, secrets: list[str], monkeypatch: pytest.MonkeyPatch, kind: type[Redised]
) -> None:
    it = kind()
    monkeypatch.setenv("BUS_USER", USER)
    for name, password in (("BUS_PASS", TOKEN), ("WRONG_PASS", WRONG)):
        monkeypatch.setenv(name, quote(password, safe="") if it.is_in_url else password)
    (tmp_path / "broker").mkdir()
    with it.started(tmp_path / "broker") as broker, serving(tmp_path, None, *secrets) as server:
        if isinstance(broker, Kafka):
            broker.create_topic("things")
        told = Told(server)
        for name, password in (("bus", "${BUS_PASS}"), ("shut", "${WRONG_PASS}")):
            filed = {"id": name, **it.connection(broker, password)}
            assert told.ask("POST", "/api/connections", filed).value == filed
        for name, status in (("shut", 422), ("bus", 201)):
            for pipeline in _using(it, name, filed["type"]):
                answer = told.ask("POST", "/api/pipelines", pipeline)
                assert answer.status == status, answer.body

        broker.kill()
        path = "/api/pipelines/writing/messages"
        assert told.ask("POST", path, {"n": 1}).status == 202
        server.err.find(re.compile("pipeline 'writing' outputs"))
        server.err.find(re.compile("pipeline 'reading' inputs"))
        told.ask_everything(pipeline_id="writing")
        told.ask("DELETE", "/api/connections/bus")
        history = told.history()

    assert leaks(history, [*VALUES, USER, WRONG]) == []


def test_a_start_that_is_refused_shows_no_credential(
    tmp_path: Path, secrets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Redised()
    monkeypatch.setenv("BUS_USER", USER)
    monkeypatch.setenv("WRONG_PASS", quote(WRONG, safe=""))
    (tmp_path / "broker").mkdir()
    with it.started(tmp_path / "broker") as broker:
        shut = it.connection(broker, "${WRONG_PASS}")
        (tmp_path / "config.connections.json").write_text(json.dumps({"shut": shut}))
        config = written(tmp_path, _using(it, "shut", "redis"))
        listen = ["--config", str(config), "--listen", f"{HOST}:0"]
        refused = run(tmp_path, "serve", *listen, *secrets)
        checked = run(tmp_path, "check", str(config), *secrets[:2])

    assert refused.returncode == 1
    assert "pipelines[0].inputs[0]" in refused.stderr
    assert "pipelines[1].outputs[0]" in refused.stderr
    assert (checked.returncode, checked.stdout) == (0, "")
    assert "uses redis connection 'shut'" in checked.stderr
    said = [("serve", refused.stdout + refused.stderr), ("check", checked.stderr)]
    assert leaks(said, [USER, WRONG]) == []


ACCOUNTS = {
    "ann": {"password": "${ANN_PASSWORD}", "role": "admin"},
    "bob": {"password": "plain-in-the-settings!"},
    "eve": {"password_hash": made("hashed & salted 7")},
}
SIGNED_IN = {
    "ann": "resolved: pass/word+1",
    "bob": "plain-in-the-settings!",
    "eve": "hashed & salted 7",
}
TOKEN_SENT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJzM2NyZXQiOjF9.c2lnbmVk"
GUESSED = "a wrong guess? 9"


def test_who_signs_in_is_told_to_nobody_with_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN_PASSWORD", SIGNED_IN["ann"])
    options = [*settled(tmp_path, auth={"type": "basic", "users": ACCOUNTS}), "--debug"]
    door = [{"id": "p", "inputs": [{"type": "http"}]}]
    said: list[tuple[str, str]] = []
    sessions = []
    with serving(tmp_path, door, *options) as server:

        def ask(method: str, path: str, headers: dict[str, str], body: Any = None) -> Answer:
            octets = None if body is None else json.dumps(body).encode()
            answer = server.request(method, path, octets, JSON_HEADERS | headers)
            told = {name: text for name, text in answer.headers.items() if name != "set-cookie"}
            said.append((f"{method} {path}", f"{told} {answer.body.decode()}"))
            return answer

        for name, password in SIGNED_IN.items():
            browser = ask("POST", LOGIN, {}, {"username": name, "password": password})
            sessions.append(session_of(browser.headers["set-cookie"]))
            for headers in (basic(name, password), cookie(sessions[-1]), bearer(TOKEN_SENT)):
                for row in ENDPOINTS:
                    if row.method == "GET" and row.path not in STREAMS:
                        ask("GET", row.path.format_map(NAMED), headers)
                for path in ("/api/pipelines", "/api/connections", "/api/config/save"):
                    ask("POST", path, headers, {"id": 1, "name": "a/b"})
            assert ask("POST", LOGIN, {}, {"username": name, "password": GUESSED}).status == 401
            ask("GET", "/api/pipelines", basic(name, GUESSED))
            ask("POST", LOGIN, {}, {"username": password, "password": name, GUESSED: TOKEN_SENT})
            ask("POST", "/api/auth/token", {}, {"token": TOKEN_SENT})
            ask("POST", "/api/auth/logout", cookie(sessions[-1]))
        with closing(server.events(basic("ann", SIGNED_IN["ann"]))) as events:
            server.post("p", {"n": 1})
            said.append((EVENTS_PATH, json.dumps(events.next(stage="input"))))
        server.stop()
        logged = {"stdout": server.out, "stderr": server.err}
        said += [(name, line) for name, lines in logged.items() for line in lines.all()]

    hash = ACCOUNTS["eve"]["password_hash"]
    kept = [*SIGNED_IN.values(), hash, *sessions, TOKEN_SENT]
    assert len({who for who, _ in said}) > len(("stderr", EVENTS_PATH))
    assert leaks(said, kept) == []
    # What somebody has tried is not logged either, and no answer repeats it but as a wrong key.
    assert leaks([each for each in said if each[0] != f"POST {LOGIN}"], [GUESSED]) == []


WRITTEN_OUT = "written+out,not/referred-to"


def broken(reference: str) -> dict[str, Any]:
    """Return connections whose credentials are written out, beside what is no reference."""
    credential = WRITTEN_OUT + reference
    return {
        "bus": {"type": "mqtt", "host": "h", "username": credential, "password": credential},
        "cache": {"type": "redis", "url": f"redis://ann:{credential}@h"},
        "lake": {
            "type": "s3",
            "bucket": "readings",
            "access_key_id": credential,
            "secret_access_key": credential,
        },
    }


@pytest.mark.long
@pytest.mark.parametrize("reference", ["${", "${a b}", "${NO_SUCH_NAME}"])
def test_a_reference_that_is_wrong_repeats_nothing_of_what_is_written_out_beside_it(
    tmp_path: Path, reference: str
) -> None:
    door = {"type": "bearer", "token": WRITTEN_OUT + reference}
    wrong = [{"id": "r", "inputs": [{"type": "http", "auth": door}]}]
    uses = [
        {"id": f"to {name}", "inputs": [{"type": "http"}], "outputs": [{"type": kind, **more}]}
        for name, kind, more in [
            ("bus", "mqtt", {"connection": "bus", "topic": "t"}),
            ("cache", "redis", {"connection": "cache", "channel": "c"}),
            ("lake", "s3", {"connection": "lake", "prefix": "p", "rotate": {"max_rows": 1}}),
        ]
    ]
    with serving(tmp_path, [], "--debug") as server:
        told = Told(server)
        (tmp_path / "config.connections.json").write_text(json.dumps(broken(reference)))
        written(tmp_path, wrong + uses)
        statuses = [
            told.ask("GET", "/api/config/plan").status,
            told.ask("POST", "/api/config/revert", {}).status,
            told.ask("POST", "/api/pipelines", wrong[0]).status,
            *_filed(told, broken(reference), uses),
        ]
        history = told.history()

    assert "unresolved-secret" in "".join(text for _, text in history)
    assert statuses[1:] == [500, 422, *(422 for _ in uses)]
    assert leaks(history, [WRITTEN_OUT]) == []


def _filed(told: Told, connections: dict[str, Any], uses: list[dict[str, Any]]) -> Iterator[int]:
    """File connections, whose answers alone show what was sent, and create what uses them."""
    for name, connection in connections.items():
        told.forget(told.ask("POST", "/api/connections", {"id": name, **connection}))
    for pipeline in uses:
        yield told.ask("POST", "/api/pipelines", pipeline).status


def _using(it: Redised, connection: str, kind: str) -> list[dict[str, Any]]:
    """Return a pipeline that reads the broker and one that writes to it."""
    named = {"type": kind, "connection": connection}
    return [
        {"id": "reading", "inputs": [{**named, **it.reads}]},
        {"id": "writing", "inputs": [{"type": "http"}], "outputs": [{**named, **it.writes}]},
    ]
