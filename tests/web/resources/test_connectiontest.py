"""Trying connections over the API, against real servers and against none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime import connectiontest
from headrace.compiler.runtime.connectiontest import ConnectionTests
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.file import FileConnection
from tests.services.authority import Authority
from tests.services.clickhouse import Access
from tests.services.redis import Redis
from tests.services.s3 import KEY, SECRET
from tests.services.server import free_port


async def tried(client: Any, connection: dict[str, Any]) -> tuple[str, str | None]:
    """Return what came of trying a connection."""
    answer = await client.simulate_post("/api/connections/test", json=connection)
    assert answer.status_code == 200, answer.text
    assert [*answer.json] == ["outcome", "why", "ms"]
    assert 0 <= answer.json["ms"] < 10_000
    assert (answer.json["outcome"] == "ok") == (answer.json["why"] is None)
    return answer.json["outcome"], answer.json["why"]


def reachable(kind: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return a connection of a kind to a server that lets it in."""
    match kind:
        case "redis":
            return {"url": request.getfixturevalue("redis_server").url}
        case "nats":
            return {"urls": request.getfixturevalue("nats_server").url}
        case "mqtt":
            server = request.getfixturevalue("mosquitto")
            return {"host": server.host, "port": server.port}
        case "kafka":
            return {"brokers": request.getfixturevalue("kafka").address}
        case "opcua":
            return {"endpoint": request.getfixturevalue("opcua_server").url}
        case "postgres":
            server = request.getfixturevalue("postgres")
            login = {"user": server.user, "password": server.password}
            return {"host": server.host, "port": server.port, "database": server.database, **login}
        case "s3":
            store = request.getfixturevalue("object_store")
            return {
                "bucket": store.objects.name,
                "access_key_id": KEY,
                "secret_access_key": SECRET,
                "endpoint": store.url,
                "allow_http": True,
            }
    raise AssertionError(kind)


KINDS = ["redis", "nats", "mqtt", "kafka", "opcua", "postgres", "clickhouse", "s3"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "clickhouse"])
async def test_a_server_that_lets_us_in_is_fine(client, request, kind: str) -> None:
    connection = {"type": kind, **reachable(kind, request)}

    assert await tried(client, connection) == ("ok", None)
    assert (await client.simulate_get("/api/connections")).json == {}


async def test_a_clickhouse_that_lets_us_in_is_fine_and_one_that_does_not_says_so(
    client, clickhouse: Access
) -> None:
    connection = {
        "type": "clickhouse",
        "url": clickhouse.url,
        "database": clickhouse.database,
        "allow_http": True,
        "user": clickhouse.user,
        "password": clickhouse.password,
    }

    assert await tried(client, connection) == ("ok", None)
    outcome, why = await tried(client, connection | {"password": "hunter2-hunter2"})
    assert outcome == "failed"
    assert why is not None
    assert "Code 516" in why
    assert "hunter2" not in why


@pytest.mark.parametrize(
    ("connection", "where"),
    [
        ({"type": "redis", "url": "redis://{}"}, "does not answer: connection refused"),
        ({"type": "nats", "urls": "nats://{}"}, "does not answer"),
        ({"type": "mqtt", "host": "127.0.0.1", "port": "{}"}, "does not answer"),
        ({"type": "kafka", "brokers": "{}"}, "does not answer: connection refused"),
        ({"type": "opcua", "endpoint": "opc.tcp://{}"}, "does not answer"),
        (
            {"type": "postgres", "host": "127.0.0.1", "port": "{}", "database": "d", "user": "u"}
            | {"password": "hunter2"},
            "does not answer: connection refused",
        ),
        (
            {"type": "clickhouse", "url": "http://{}", "database": "d", "user": "u"}
            | {"password": "hunter2", "allow_http": True},
            "does not answer: connection refused",
        ),
        (
            {"type": "s3", "bucket": "plant", "access_key_id": "hunter2", "allow_http": True}
            | {"secret_access_key": "hunter2", "endpoint": "http://{}"},
            "does not answer",
        ),
    ],
    ids=KINDS,
)
async def test_where_nobody_listens_it_fails_and_says_so(client, connection, where: str) -> None:
    port = free_port()
    given = {
        key: port
        if value == "{}" and key == "port"
        else str(value).format(f"127.0.0.1:{port}")
        if isinstance(value, str)
        else value
        for key, value in connection.items()
    }

    outcome, why = await tried(client, given)

    assert outcome == "failed"
    assert why is not None
    assert f"127.0.0.1:{port}" in why
    assert where in why
    assert "hunter2" not in why


async def test_a_wrong_password_is_told_without_it(client, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WRONG", "open-sesame-42")
    with Redis(tmp_path, password="right") as server:
        outcome, why = await tried(
            client, {"type": "redis", "url": f"redis://:${{WRONG}}@{server.address}"}
        )

    assert outcome == "failed"
    assert why is not None
    assert "WRONGPASS" in why
    assert "open-sesame-42" not in why


async def test_tls_is_tried_with_the_files_that_are_named(client, tmp_path, authority: Authority):
    with Redis(tmp_path, tls=authority) as server:
        url = f"rediss://{server.address}"
        trusting = {"type": "redis", "url": url, "ca_file": str(authority.ca_file)}
        assert await tried(client, trusting) == ("ok", None)
        outcome, why = await tried(client, {"type": "redis", "url": url})

    assert (outcome, str(why).startswith(f"the certificate of {server.address}")) == (
        "failed",
        True,
    )


async def test_a_reference_that_nothing_answers_is_why(client) -> None:
    outcome, why = await tried(client, {"type": "redis", "url": "redis://:${NOWHERE}@127.0.0.1"})

    assert outcome == "failed"
    assert why == "nothing resolves '${NOWHERE}': looked in the environment and the secrets file"


async def test_a_directory_is_looked_at_and_not_made(client, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()

    assert await tried(client, {"type": "file", "root": str(tmp_path / "a" / "b")}) == ("ok", None)
    assert not (tmp_path / "a").exists()
    assert await tried(client, {"type": "file", "root": str(tmp_path / "taken" / "b")}) == (
        "failed",
        f"'{tmp_path / 'taken'}' is no directory",
    )


@pytest.mark.parametrize(
    ("connection", "path"),
    [({"type": "redis"}, "url"), ({"type": "nosuch"}, "type"), ([], ""), ({"url": "x"}, "")],
)
async def test_what_is_no_connection_is_refused(client, connection, path: str) -> None:
    answer = await client.simulate_post("/api/connections/test", json=connection)

    assert answer.status_code == 422
    assert answer.json["error"].startswith("the connection cannot be tried: ")
    assert [each["path"] for each in answer.json["diagnostics"]] == [path]


class Held(FileConnection, kind="held"):
    """A connection that is tried until it is let go."""

    async def reach(self, ctx: Any) -> None:
        await LET_GO.wait()
        raise BuildRefused(Fault("turned-away", "no"))


LET_GO = asyncio.Event()


async def test_two_are_tried_at_a_time_and_others_wait(engine, monkeypatch) -> None:
    monkeypatch.setattr(connectiontest, "MOST_WAITING", 1)
    LET_GO.clear()
    tests = ConnectionTests(engine.inner._world)
    under_way = [asyncio.ensure_future(tests.take(Held(root="x"))) for _ in range(3)]
    await asyncio.sleep(0)

    with pytest.raises(connectiontest.TooManyTests):
        await tests.take(Held(root="x"))
    LET_GO.set()

    assert [each.why for each in await asyncio.gather(*under_way)] == ["no"] * 3


async def test_what_takes_too_long_is_given_up(engine, monkeypatch) -> None:
    monkeypatch.setattr(connectiontest, "LIMIT_SECONDS", 0.01)
    LET_GO.clear()

    tried = await ConnectionTests(engine.inner._world).take(Held(root="x"))

    assert tried.why == "nothing has answered after 0.01 s"


async def test_who_asks_learns_which_pipelines_name_a_connection(client, tmp_path: Path) -> None:
    for name in ("a", "b"):
        filed = {"id": name, "type": "file", "root": str(tmp_path / name)}
        await client.simulate_post("/api/connections", json=filed)
    output = {"type": "file", "connection": "a", "path": "x"}
    for id in ("q", "p"):
        config = {"id": id, "inputs": [{"type": "http"}], "outputs": [output]}
        created = await client.simulate_post("/api/pipelines", json=config)
        assert created.status_code == 201, created.text

    told = (await client.simulate_get("/api/connections", query_string="used_by=true")).json
    plain = (await client.simulate_get("/api/connections")).json

    assert {name: each["used_by"] for name, each in told.items()} == {"a": ["p", "q"], "b": []}
    assert plain == {
        name: {k: v for k, v in each.items() if k != "used_by"} for name, each in told.items()
    }
