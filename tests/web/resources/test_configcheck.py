"""Checks of what somebody is writing: what is wrong with it, and where everything stands."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.jsontext import encode
from headrace.web.resources import configcheck
from headrace.web.service import Service
from tests.web.declaring import declare

HTTP = "inputs: [ { type: http } ]"


async def checked(client: Any, text: str, status: int = 200, **options: Any) -> Any:
    answer = await client.simulate_post("/api/config/check", json={"text": text, **options})
    assert answer.status_code == status, answer.text
    return answer.json


async def said(client: Any, text: str, **options: Any) -> list[tuple[str, str]]:
    told = await checked(client, text, **options)
    return [(each["code"], each["path"]) for each in told["diagnostics"]]


async def test_a_config_that_is_right_has_places_and_no_diagnostics(client) -> None:
    told = await checked(client, f"# why\n- id: a\n  {HTTP}\n")

    assert told == {
        "diagnostics": [],
        "places": {
            "pipelines": [2, 1, 3, 29],
            "pipelines[0]": [2, 3, 3, 29],
            "pipelines[0].id": [2, 3, 2, 8],
            "pipelines[0].inputs": [3, 3, 3, 29],
            "pipelines[0].inputs[0]": [3, 13, 3, 27],
            "pipelines[0].inputs[0].type": [3, 15, 3, 25],
        },
    }


async def test_what_is_wrong_is_told_with_its_range_and_what_would_do(client) -> None:
    told = await checked(client, f"{HTTP}\nouputs: []\n", document="pipeline")

    [diagnostic] = told["diagnostics"]
    assert {key: diagnostic[key] for key in ("line", "column", "end_line", "end_column")} == {
        "line": 2,
        "column": 1,
        "end_line": 2,
        "end_column": 7,
    }
    assert (diagnostic["replacement"], diagnostic["file"]) == ("outputs", None)
    assert told["places"]["ouputs"] == [2, 1, 2, 11]


async def test_json_is_checked_as_json(client) -> None:
    told = await checked(
        client, json.dumps({"inputs": [{"type": "htp"}]}), document="pipeline", format="json"
    )

    assert [each["replacement"] for each in told["diagnostics"]] == ['"http"']


async def test_what_is_no_yaml_is_told_where_it_is_none_and_the_rest_is_checked(client) -> None:
    told = await checked(client, f"- {HTTP}\n\touputs: []\n")

    assert [(each["code"], each["line"], each["end_line"]) for each in told["diagnostics"]] == [
        ("tab", 2, None),
        ("unknown-key", 2, 2),
    ]
    assert told["places"]["pipelines[0].ouputs"] == [2, 2, 2, 12]


async def test_what_cannot_be_read_has_no_places(client) -> None:
    told = await checked(client, "- [\n")

    assert [each["code"] for each in told["diagnostics"]] == ["malformed-yaml"]
    assert told["places"] == {}


async def test_a_pipeline_is_checked_beside_what_runs(client, service: Service) -> None:
    await client.simulate_post("/api/pipelines", json={"id": "wells", "inputs": [{"type": "http"}]})
    await client.simulate_post(
        "/api/connections", json={"id": "disk", "type": "file", "root": "disk"}
    )
    declare(service.engine, {"machines": Bounds(500, 60)})
    text = """\
id: {id}
inputs: [ {{ type: pipeline, upstream: {up} }} ]
state: {{ bucket: {bucket} }}
outputs: [ {{ type: file, connection: {disk}, path: out }} ]
"""
    right = {"id": "means", "up": "wells", "bucket": "machines", "disk": "disk"}

    assert await said(client, text.format(**right), document="pipeline") == []
    for key, word, code, path in (
        ("up", "wels", "missing-upstream", "inputs[0].upstream"),
        ("bucket", "machine", "unknown-bucket", "state.bucket"),
        ("disk", "disc", "unknown-connection", "outputs[0].connection"),
        ("id", "wells", "duplicate", "id"),
    ):
        found = await said(client, text.format(**{**right, key: word}), document="pipeline")
        assert (code, path) in found


async def test_one_that_is_edited_is_checked_in_the_place_of_the_one_that_runs(client) -> None:
    for id, inputs in (
        ("wells", {"type": "http"}),
        ("means", {"type": "pipeline", "upstream": "wells"}),
    ):
        await client.simulate_post("/api/pipelines", json={"id": id, "inputs": [inputs]})

    of_wells = {"document": "pipeline", "id": "wells"}
    assert await said(client, f"id: wells\n{HTTP}", **of_wells) == []
    ring = await said(client, "inputs: [ { type: pipeline, upstream: means } ]", **of_wells)
    assert ring == [("cycle", "inputs[0].upstream")]
    assert await said(client, f"id: others\n{HTTP}", **of_wells) == [("not-a-choice", "id")]


async def test_whose_place_nobody_has_is_told(client) -> None:
    told = await checked(client, HTTP, 404, document="pipeline", id="nobody")

    assert "nobody" in told["error"]


async def test_connections_are_checked_as_their_file_is(client) -> None:
    text = "disk: { type: fiel, root: a }\nkeys: { type: mqtt, url: 'mqtt://a', password: x }\n"

    assert ("unknown-kind", "disk.type") in await said(client, text, document="connections")


async def test_no_secret_is_looked_up(client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.compiler.schema.secrets.Secrets.lookup", lambda *_: 1 / 0)
    auth = "auth: { type: bearer, token: '${TOKEN}' }"

    assert await said(client, f"- inputs: [ {{ type: http, {auth} }} ]") == []


@pytest.mark.parametrize(
    ("options", "path", "expected"),
    [
        ({"format": "toml"}, "format", "one of json, yaml"),
        ({"document": "piepline"}, "document", "one of config, pipeline, connections"),
        ({"text": 5}, "text", "a string"),
        ({"id": ""}, "id", "a string that is not blank"),
        ({"id": "a", "document": "config"}, "id", "'document': 'pipeline'"),
        ({"dokument": "config"}, "dokument", "one of text, format, document, id"),
    ],
)
async def test_a_malformed_request_is_told_what_would_be_accepted(
    client, options, path, expected
) -> None:
    answer = await client.simulate_post("/api/config/check", json={"text": "", **options})

    assert answer.status_code == 400
    assert (path, expected) in [
        (each["path"], each["expected"]) for each in answer.json["diagnostics"]
    ]


async def test_a_text_is_as_large_as_it_can_be_read_in_no_time(client) -> None:
    text = "a" * (configcheck.LARGEST - 100)

    assert await said(client, text) == [("wrong-type", "")]
    await checked(client, text + "a" * 100, 413)


async def test_a_text_has_no_more_values_than_can_be_held_in_no_time(client) -> None:
    most = configcheck.MOST_VALUES

    assert await said(client, f"[{'1,' * (most - 2)}1]", document="connections") == [
        ("wrong-type", "")
    ]
    assert await said(client, f"[{'1,' * most}1]", document="connections") == [("too-large", "")]


async def test_of_many_diagnostics_the_errors_come_first(
    client, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "{ type: filter, String: { field: '${ODD}', operator: equal_to, value: a } }"
    text = f"- {HTTP}\n  transforms: [ {odd} ]\n  outputs: [ {{ type: stdoot }} ]\n"
    kinds = [
        ("literal-reference", "pipelines[0].transforms[0].String.field"),
        ("unknown-kind", "pipelines[0].outputs[0].type"),
    ]

    assert await said(client, text) == kinds
    monkeypatch.setattr(configcheck, "MOST_DIAGNOSTICS", 1)
    assert await said(client, text) == kinds[1:]


async def test_a_key_as_long_as_a_text_is_not_repeated_for_what_is_in_it(client) -> None:
    key = "k" * 200_000
    told = await checked(client, f"{{ ? {key} : [ 1, 2, 3, 4, 5, 6, 7, 8 ] }}")

    assert len(encode(told["places"])) < 2 * configcheck.MOST_CHARACTERS


async def test_markup_stays_text(client) -> None:
    told = await checked(client, f"- id: '<script>'\n  {HTTP}\n- id: '<script>'\n  {HTTP}\n")

    assert [each["found"] for each in told["diagnostics"]] == ['"<script>"']


async def test_no_more_than_two_at_a_time_are_checked(
    client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = 0, 0
    original = configcheck.checked

    def counted(*args: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return original(*args)
        finally:
            at_once -= 1

    monkeypatch.setattr(configcheck, "checked", counted)

    await asyncio.gather(*(checked(client, f"- {HTTP}\n" * 300) for _ in range(8)))

    assert most <= 2
