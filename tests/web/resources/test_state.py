"""The buckets over the API: what is declared, and the latest of what is held."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import falcon.testing
import pytest

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import load_program
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.documents import read
from headrace.web.app import Application
from headrace.web.resources import state
from headrace.web.service import Service
from tests.virtual import virtual
from tests.web.declaring import declare
from tests.web.jsonengine import JsonEngine

PIPELINE = {"id": "plc", "inputs": [{"type": "http"}]}


def declared(service: Service, name: str = "machines", **bounds: Any) -> Bucket:
    """Return the one bucket that is declared."""
    [bucket] = declare(service.engine, {name: Bounds(**bounds)})
    return bucket


async def contents(client: Any, name: str = "machines") -> Any:
    answer = await client.simulate_get(f"/api/state/{quote(name, safe='')}")
    assert answer.status_code == 200
    return answer.json


async def test_without_buckets_there_are_none(client) -> None:
    listed = await client.simulate_get("/api/state")

    assert (listed.status_code, listed.json) == (200, [])


async def test_buckets_are_listed_by_name_with_what_they_may_hold(client, service) -> None:
    buckets = declare(service.engine, {"b": Bounds(5, 60), "B": Bounds(1), "a b": Bounds()})
    buckets.get("b").merge({"m1": {"n": 1}, "": {"n": 1}})

    listed = await client.simulate_get("/api/state")

    assert listed.json == [
        {"name": "B", "keys": 0, "max_keys": 1, "idle_timeout_secs": None},
        {"name": "a b", "keys": 0, "max_keys": 10_000, "idle_timeout_secs": None},
        {"name": "b", "keys": 2, "max_keys": 5, "idle_timeout_secs": 60},
    ]
    assert [*listed.json[0]] == ["name", "keys", "max_keys", "idle_timeout_secs"]


async def test_an_empty_bucket_has_no_entries(client, service) -> None:
    declared(service)

    assert await contents(client) == {
        "name": "machines",
        "keys": 0,
        "truncated": False,
        "entries": [],
    }


async def test_an_entry_is_its_key_its_values_and_when_it_was_written(client, service) -> None:
    values = {"mode": "auto", "n": 2**70, "at": 42.0, "list": [1, None], "ü": {"b": 1, "a": 2}}
    declared(service).merge({"m1": values})
    before = datetime.now(UTC)

    read = await contents(client)

    [entry] = read["entries"]
    assert [*entry] == ["key", "values", "updated_at"]
    assert (entry["key"], entry["values"]) == ("m1", values)
    assert json.dumps(entry["values"]) == json.dumps(
        values
    )  # in this order, 42.0 still with a point
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", entry["updated_at"])
    assert abs((datetime.fromisoformat(entry["updated_at"]) - before).total_seconds()) < 60
    assert [*read] == ["name", "keys", "truncated", "entries"]


async def test_a_page_has_200_entries_and_says_that_there_are_more(client, service) -> None:
    bucket = declared(service)
    bucket.merge({f"{n:03}": {"n": n} for n in range(200)})
    whole = await contents(client)
    bucket.merge({"zzz": {"n": 200}})

    cut = await contents(client)

    assert (whole["keys"], whole["truncated"], len(whole["entries"])) == (200, False, 200)
    assert (cut["keys"], cut["truncated"], len(cut["entries"])) == (201, True, 200)
    assert [each["key"] for each in cut["entries"]] == ["zzz"] + [f"{n:03}" for n in range(199)]


async def test_a_page_ends_where_its_text_becomes_too_long(client, service, monkeypatch) -> None:
    monkeypatch.setattr(state, "MOST_BYTES", 3000)
    declared(service).merge({key: {"text": "x" * 1000} for key in "abcdefg"})

    read = await contents(client)

    assert [each["key"] for each in read["entries"]] == ["a", "b", "c"]
    assert (read["keys"], read["truncated"]) == (7, True)


async def test_one_entry_is_on_the_page_whatever_its_size(client, service, monkeypatch) -> None:
    monkeypatch.setattr(state, "MOST_BYTES", 1)
    declared(service).merge({key: {"text": "x" * 1000} for key in "ab"})

    read = await contents(client)

    assert [each["key"] for each in read["entries"]] == ["a"]


async def test_what_is_written_while_a_page_is_encoded_is_not_on_it(client, service) -> None:
    bucket = declared(service)
    bucket.merge({key: {"text": "x" * 2**20, "n": 0} for key in "abc"})
    reading = asyncio.ensure_future(contents(client))

    while not reading.done():
        bucket.merge({key: {"n": len(key)} for key in ("a", "b", "c", "d")})
        await asyncio.sleep(0)

    entries = (await reading)["entries"]
    assert len({each["values"]["n"] for each in entries}) == 1
    assert len({each["updated_at"] for each in entries}) == 1


@pytest.mark.parametrize(
    "name",
    ["a/b", "a b", "grün", "%2F", "a%2Fb", "a?b#c", "..", "a\nb", "'", "dry-run", "x" * 1000],
)
async def test_any_name_can_be_addressed(client, service, name) -> None:
    declared(service, name)

    assert (await contents(client, name))["name"] == name


async def test_a_name_in_a_path_is_decoded_once(client, service) -> None:
    declared(service, "a/b")

    once = await client.simulate_get("/api/state/a%2Fb")
    twice = await client.simulate_get("/api/state/a%252Fb")

    assert (once.status_code, twice.status_code) == (200, 404)
    assert twice.json == {"error": "no bucket named 'a%2Fb' is declared (expected one of a/b)"}


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ([], "no bucket named 'plc' is declared (the config declares none)"),
        (["b", "a"], "no bucket named 'plc' is declared (expected one of a, b)"),
    ],
)
async def test_a_bucket_that_is_not_declared_is_not_found(client, service, names, error) -> None:
    await client.simulate_post("/api/pipelines", json=PIPELINE)  # which is no bucket
    declare(service.engine, {name: Bounds() for name in names})

    missing = await client.simulate_get("/api/state/plc")

    assert (missing.status_code, missing.json) == (404, {"error": error})


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_buckets_are_read_only(client, service, method) -> None:
    bucket = declared(service)

    for path in ("/api/state", "/api/state/machines"):
        refused = await client.simulate_request(method, path, body="{}")
        assert refused.status_code == 405
        assert "GET" in refused.headers["Allow"]
    assert len(bucket) == 0


async def test_a_pipeline_says_which_bucket_it_uses_and_its_echo_says_so_too(
    client, service
) -> None:
    declared(service)
    config = {**PIPELINE, "state": {"bucket": "machines", "key": "machine_id"}}

    created = await client.simulate_post("/api/pipelines", json=config)
    listed = await client.simulate_get("/api/pipelines")

    assert created.status_code == 201
    assert created.json["config"] == {**config, "transforms": [], "outputs": []}
    assert listed.json == [created.json]


async def test_an_undeclared_bucket_is_refused_with_its_place(client, service) -> None:
    declared(service)
    body = """{"id": "plc", "inputs": [{"type": "http"}],
 "state": {"bucket": "machine"}}"""

    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 422
    assert refused.json["error"] == (
        "pipeline 'plc' could not be started: state.bucket: there is no bucket 'machine' "
        "(expected one of machines)"
    )
    [diagnostic] = refused.json["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"], diagnostic["column"], diagnostic["path"]) == (
        "unknown-bucket",
        2,
        22,
        "state.bucket",
    )
    assert diagnostic["suggestion"] == "did you mean 'machines'?"
    assert (await client.simulate_get("/api/pipelines")).json == []


async def test_where_no_bucket_is_declared_a_refusal_tells_where_to(client) -> None:
    refused = await client.simulate_post(
        "/api/pipelines", json={**PIPELINE, "state": {"bucket": "machines"}}
    )

    assert refused.status_code == 422
    assert refused.json["diagnostics"][0]["suggestion"] == (
        "declare it in the config file: 'state: { \"machines\": {} }' beside 'pipelines'"
    )


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "state.bucket"),
        ({"bucket": "machines", "kee": "a"}, "state.kee"),
        ({"bucket": "machines", "key": " "}, "state.key"),
        ({"bucket": None}, "state.bucket"),
        (3, "state"),
    ],
)
async def test_a_fault_in_state_is_told_once(client, service, given: Any, path: str) -> None:
    declared(service)

    refused = await client.simulate_post("/api/pipelines", json={**PIPELINE, "state": given})

    assert refused.status_code == 422
    assert [each["path"] for each in refused.json["diagnostics"]] == [path]


def test_the_config_on_the_page_about_state_loads_without_a_word(components) -> None:
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "state.md").read_text()
    texts = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)

    said = [load_program(read(text, None, "yaml"), components) for text in texts]

    assert [(program is not None, diagnostics) for program, diagnostics in said] == [(True, [])]


class Later:
    """A server's API in virtual time."""

    def __init__(self, components: Catalogue) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.engine = JsonEngine(Engine(self.clock), components)
        self.service = Service(self.engine, components, self.clock, is_ready=True)

    async def get(self, path: str) -> Any:
        async with falcon.testing.ASGIConductor(Application(self.service)) as client:
            return (await client.simulate_get(path)).json


@virtual(started_at=datetime(2026, 3, 1, 8, tzinfo=UTC))
async def test_what_has_expired_is_neither_counted_nor_listed(components) -> None:
    api = Later(components)
    bucket = declared(api.service, max_keys=10, idle_seconds=60)
    bucket.merge({"m1": {"mode": "auto"}, "m2": {"mode": "auto"}})
    await api.clock.sleep(59)
    bucket.merge({"m2": {"speed": 3}})
    before = await api.get("/api/state/machines")

    await api.clock.sleep(1)

    assert [each["key"] for each in before["entries"]] == ["m2", "m1"]
    assert await api.get("/api/state/machines") == {
        "name": "machines",
        "keys": 1,
        "truncated": False,
        "entries": [
            {
                "key": "m2",
                "values": {"mode": "auto", "speed": 3},
                "updated_at": "2026-03-01T08:00:59.000000+00:00",
            }
        ],
    }
    assert (await api.get("/api/state"))[0]["keys"] == 1


@virtual
async def test_messages_have_a_turn_while_many_expired_keys_are_let_go_of(components) -> None:
    api = Later(components)
    bucket = declared(api.service, max_keys=50_000, idle_seconds=60)
    bucket.merge({str(n): {"n": n} for n in range(50_000)})
    await api.clock.sleep(60)
    left = []

    async def watch() -> None:
        while bucket.entries:
            left.append(len(bucket.entries))
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    [summary] = await api.get("/api/state")
    await watching

    assert summary["keys"] == 0
    assert {50_000, 40_000, 30_000, 20_000, 10_000} <= {*left}


def described(entries: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(each["updated_at"], each["key"]) for each in entries]


@virtual
async def test_the_newest_come_first_and_those_of_one_moment_by_key(components) -> None:
    api = Later(components)
    bucket = declared(api.service, max_keys=1000)
    for second in range(3):
        bucket.merge({f"{key}{second}": {"n": 1} for key in "cab"})
        await api.clock.sleep(1)

    entries = (await api.get("/api/state/machines"))["entries"]

    told = described(entries)
    assert [key for _, key in told] == ["a2", "b2", "c2", "a1", "b1", "c1", "a0", "b0", "c0"]
    assert [at for at, _ in told] == sorted((at for at, _ in told), reverse=True)
