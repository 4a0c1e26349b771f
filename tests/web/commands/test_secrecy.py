"""No offline command tells a credential: one is planted in each place, and all output is searched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.compiler.component.families import Connection
from headrace.compiler.schema.fields import SecretText
from headrace.compiler.schema.urls import HttpUrl
from headrace.web.commands.cli import commands
from tests.authoring.language.test_capturefile import written
from tests.authoring.playing.playing import known

USER_INFO = "user info"
SPELLED, REFERRED = "spelled", "referred"


class Plants:
    """Makes credentials, each of them once, and knows all that it has made.

    Written out in the config, or as a reference that the environment has the value of.
    """

    def __init__(self, way: str) -> None:
        self._way = way
        self.values: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.places = set[tuple[str, str]]()

    def plant(self, kind: str, place: str, *, always_spelled: bool = False) -> str:
        self.places.add((kind, place))
        number = len(self.values)
        value = self.values[f"{kind} {place} {number}"] = f"Zq{number}xyzzyPlanted"
        if self._way == SPELLED or always_spelled:
            return value
        self.environment[f"PLANT_{number}"] = value
        return f"${{PLANT_{number}}}"

    def in_url(self, kind: str, scheme: str, place: str = USER_INFO) -> str:
        """Return a url with a user and a password; of one over HTTP nothing is resolved."""
        plain = place == USER_INFO
        user, password = (self.plant(kind, place, always_spelled=plain) for _ in range(2))
        return f"{scheme}://{user}:{password}@127.0.0.1:9"

    def told_in(self, text: str) -> list[str]:
        """Return which of them are in a text, also cut in half."""
        return [place for place, value in self.values.items() if value[:9] in text]


def connections(plants: Plants) -> dict[str, Any]:
    """Return a connection of each kind, with a credential wherever it takes one."""

    def secrets(kind: str, *names: str) -> dict[str, str]:
        return {"type": kind, **{name: plants.plant(kind, name) for name in names}}

    database = {"host": "127.0.0.1", "database": "d", "user": "u"}
    return {
        "mqtt": {**secrets("mqtt", "username", "password"), "host": "127.0.0.1"},
        "kafka": {
            **secrets("kafka", "username", "password"),
            "brokers": f"{plants.plant('kafka', 'brokers')}.example:9092",
            "tls": True,
            "sasl_mechanism": "PLAIN",
        },
        "nats": {"type": "nats", "urls": plants.in_url("nats", "nats", "urls")},
        "redis": {"type": "redis", "url": plants.in_url("redis", "redis", "url")},
        "opcua": {
            **secrets("opcua", "username", "password"),
            "endpoint": f"opc.tcp://{plants.plant('opcua', 'endpoint')}.example:4840",
        },
        "postgres": {**secrets("postgres", "password"), **database},
        "clickhouse": {
            **secrets("clickhouse", "password"),
            "url": "https://127.0.0.1:9",
            "database": "d",
            "user": "u",
        },
        "s3": {
            **secrets("s3", "access_key_id", "secret_access_key"),
            "endpoint": "https://127.0.0.1:9",
            "bucket": "lake",
            "region": "r",
        },
    }


def config(plants: Plants, limit: int) -> list[dict[str, Any]]:
    """Return pipelines that use them all, and have credentials of their own."""

    def bearer(kind: str) -> dict[str, str]:
        return {"type": "bearer", "token": plants.plant(kind, "auth.token")}

    def header(kind: str) -> dict[str, str]:
        return {"type": "header", "name": "X-Key", "value": plants.plant(kind, "auth.value")}

    above = {
        "type": "filter",
        "Numeric": {"field": "n", "operator": "greater_than", "value": limit},
    }
    columns = [{"name": "n", "type": "float"}]
    return [
        {
            "id": "posted",
            "inputs": [{"type": "http", "auth": bearer("http")}],
            "transforms": [above],
            "outputs": [
                {"type": "http", "url": f"{plants.in_url('http', 'https')}/?key=shown-as-ever"},
                {"type": "http", "url": "https://127.0.0.1:9/", "auth": bearer("http")},
                {"type": "http", "url": "https://127.0.0.1:9/", "auth": header("http")},
                {"type": "redis", "connection": "redis", "channel": "c"},
                {"type": "nats", "connection": "nats", "subject": "s"},
                {"type": "kafka", "connection": "kafka", "topic": "t"},
            ],
        },
        {
            "id": "asking",
            "inputs": [{"type": "http", "auth": header("http")}],
            "transforms": [
                {"type": "http", "verb": "POST", "url": plants.in_url("http", "https")},
            ],
        },
        {
            "id": "read",
            "inputs": [
                {"type": "mqtt", "connection": "mqtt", "topic": "t"},
                {"type": "opcua", "connection": "opcua", "nodes": [{"node_id": "ns=2;s=a"}]},
            ],
            "outputs": [
                {"type": "postgres", "connection": "postgres", "table": "t", "columns": columns},
                {
                    "type": "clickhouse",
                    "connection": "clickhouse",
                    "table": "t",
                    "order_by": ["n"],
                    "columns": columns,
                },
                {"type": "s3", "connection": "s3", "prefix": "p", "rotate": {"max_rows": 2}},
            ],
        },
    ]


TESTS = {
    "messages": {"m": {"n": 2}},
    "tests": {
        "what never comes": {"given": {"posted": "m"}, "expect": {"posted": {"1s": {"n": 9}}}},
        "who never answers": {
            "given": {"asking": "m"},
            "replies": {"asking.transforms[0]": "down"},
            "expect": {"asking": {}},
        },
        "who refuses": {
            "given": {"asking": "m"},
            "replies": {"asking.transforms[0]": {"$status": 401, "$body": [1]}},
            "expect": {"asking": {"0s": {"n": 1}}},
        },
        "who is away": {
            "given": {"read.inputs[0]": "m 60s m"},
            "faults": {
                f"connections.{name}": {"0s..50s": "down"}
                for name in ("mqtt", "postgres", "clickhouse", "s3")
            },
            "until": "2m",
            "expect": {"read": {}},
        },
        "who is away as well": {
            "given": {"posted": "m 60s m"},
            "faults": {
                **{f"posted.outputs[{index}]": {"0s..50s": "down"} for index in range(6)},
            },
            "until": "2m",
            "expect": {"posted": {}, "posted.outputs[0]": {}},
        },
    },
}


def planted(folder: Path, way: str) -> Plants:
    """Write two configs with connections, other credentials in each; tests, and a capture."""
    plants = Plants(way)
    for name, limit in (("config", 1), ("new", 3)):
        filed = connections(plants)
        (folder / f"{name}.yaml").write_text(json.dumps(config(plants, limit)))
        (folder / f"{name}.connections.yaml").write_text(json.dumps(filed))
    (folder / "config.tests.yaml").write_text(json.dumps(TESTS))
    lines = [
        {"at": 1, "to": f"{id}.inputs[0]", "batch": [{"n": n}]}
        for id in ("posted", "asking")
        for n in (2, 4)
    ]
    (folder / "c.ndjson").write_bytes(written(*lines, {"at": 9, "end": "seconds"}))
    return plants


COMMANDS: Sequence[Sequence[str]] = (
    ("check", "config.yaml", "new.yaml"),
    ("check", "config.yaml", "new.yaml", "--format", "json"),
    ("explain", "config.yaml"),
    ("explain", "config.yaml", "--code"),
    ("explain", "config.yaml", "--format", "json"),
    ("explain", "config.yaml", "--format", "mermaid"),
    ("explain", "config.yaml", "--format", "dot"),
    ("diff", "config.yaml", "new.yaml"),
    ("diff", "config.yaml", "new.yaml", "--format", "json"),
    ("diff", "config.yaml", "new.yaml", "--capture", "c.ndjson"),
    ("diff", "config.yaml", "new.yaml", "--capture", "c.ndjson", "--format", "json"),
    ("test", "config.tests.yaml", "--coverage", "--junit", "junit.xml"),
    ("test", "config.tests.yaml", "--coverage", "--format", "json"),
    ("run", "config.yaml", "posted"),
    ("run", "config.yaml", "asking", "--replies", "replies.yaml"),
    ("run", "config.yaml", "asking", "--allow-http"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("way", [SPELLED, REFERRED])
def test_no_command_tells_a_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, arguments: Sequence[str]
):
    monkeypatch.chdir(tmp_path)
    plants = planted(tmp_path, way)
    (tmp_path / "replies.yaml").write_text('{"asking.transforms[0]": 403}')
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    told = CliRunner(env=plants.environment).invoke(
        commands, arguments, input='{"n": 2}\n{"n": 4}\n'
    )
    made = [file for file in tmp_path.iterdir() if before.get(file) != file.read_bytes()]

    assert told.exit_code in (0, 1), told.output
    assert told.stdout.strip() or "failed  " in told.stderr or "0 errors" in told.stderr
    assert isinstance(told.exception, SystemExit | None)
    assert plants.told_in("".join([told.output, *(file.read_text() for file in made)])) == []


def test_the_configs_are_played_and_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Else there would be nothing for the others to find."""
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, SPELLED)

    checked = CliRunner().invoke(commands, ["check", "config.yaml", "new.yaml"])
    tested = CliRunner().invoke(commands, ["test", "config.tests.yaml", "--format", "json"])

    assert checked.exit_code == 0, checked.output
    outcomes = {each["name"]: each["outcome"] for each in json.loads(tested.stdout)}
    assert outcomes == dict.fromkeys(TESTS["tests"], "failed")


def test_what_differs_in_credentials_is_told_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, SPELLED)

    told = CliRunner().invoke(commands, ["diff", "config.yaml", "new.yaml"]).stdout

    assert 'outputs[1].auth.token: "***" -> "***"' in told
    assert 'outputs[0].url: "https://***@127.0.0.1:9/?key=shown-as-ever" -> "https://***@' in told
    assert "changed    connection 'postgres'" in told


def test_of_a_url_only_the_user_info_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A key in the query of a url is a plain field: who writes it there shows it."""
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, SPELLED)

    [told, *_] = json.loads(
        CliRunner().invoke(commands, ["explain", "config.yaml", "--format", "json"]).stdout
    )

    [url] = [each["value"] for each in told["outputs"][0]["options"] if each["name"] == "url"]
    assert url == "https://***@127.0.0.1:9/?key=shown-as-ever"


def test_a_credential_is_planted_in_each_place_that_has_one(tmp_path: Path):
    """So the others search for each that there is, and a new one fails here."""
    takes = {
        (component.kind, wire)
        for component in known()
        if issubclass(component, Connection)
        for wire, option in component.options().items()
        if isinstance(option.field, SecretText)
    }
    urls = {
        (component.kind, USER_INFO)
        for component in known()
        if not issubclass(component, Connection)
        and any(isinstance(option.field, HttpUrl) for option in component.options().values())
    }

    plants = planted(tmp_path, SPELLED)

    http = {("http", "auth.token"), ("http", "auth.value")}
    assert plants.places == takes | urls | http
