"""Listing, filing and removing connections over the API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import falcon.testing
import jsonschema
import pytest
import pytest_asyncio

from headrace.compiler.component.catalogue import Catalogue
from headrace.web.app import Application
from headrace.web.openapi import described
from headrace.web.service import Service
from tests.web.conftest import waited_for
from tests.web.exchange import Exchange
from tests.web.jsonengine import JsonEngine
from tests.web.resources.wells import (
    DISK,
    LET_DOWN,
    YARD,
    Bucket,
    Well,
    create,
    drawing,
    file,
    listed,
    remove,
)


@pytest.fixture
def components(components: Catalogue) -> Catalogue:
    LET_DOWN.clear()
    return Catalogue([*components, Well, Bucket])


@pytest_asyncio.fixture
async def client(
    engine: JsonEngine, components: Catalogue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[falcon.testing.ASGIConductor]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YARD_PASS", "s3same-open")
    service = Service(engine, components, engine.clock, is_ready=True)
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as conductor:
        yield conductor


async def test_what_is_filed_is_echoed_and_listed_with_its_secrets_as_templates(client) -> None:
    filed = await file(client, YARD)

    assert filed.status_code == 201
    assert "Location" not in filed.headers
    assert filed.json == YARD
    assert list(filed.json) == ["id", "type", "host", "password"]
    assert await listed(client) == {"yard": {k: v for k, v in YARD.items() if k != "id"}}


async def test_what_was_left_out_is_left_out_and_what_was_given_is_given(client) -> None:
    filed = await file(client, {**YARD, "depth": 9})

    assert filed.json == {**YARD, "depth": 9}


async def test_a_broker_is_echoed_as_it_was_written(client) -> None:
    bus = {"id": "bus", "type": "nats", "urls": "nats://${NATS_USER}:${NATS_PASS}@bus:4222"}

    filed = await file(client, bus)

    assert (filed.status_code, filed.json) == (201, bus)


def test_the_description_takes_what_can_be_filed_and_nothing_else(components: Catalogue) -> None:
    schema = {"$ref": "#/components/schemas/CreateConnectionRequest", **described(components)}
    takes = jsonschema.Draft202012Validator(schema).is_valid

    assert takes(YARD)
    assert takes(DISK)
    assert not takes({key: value for key, value in YARD.items() if key != "id"})
    assert not takes({**YARD, "id": ""})
    assert not takes({**YARD, "hots": "b"})
    assert not takes({**DISK, "type": "well"})


async def test_connections_are_listed_in_the_order_of_their_names(client) -> None:
    for name in ("b", "a", "Z", "ä"):
        await file(client, {**DISK, "id": name})

    assert list(await listed(client)) == ["Z", "a", "b", "ä"]


async def test_no_connection_is_an_empty_object(client) -> None:
    assert await listed(client) == {}


async def test_a_name_can_be_filed_once(client) -> None:
    await file(client, YARD)

    again = await file(client, {**DISK, "id": "yard"})

    assert again.status_code == 409
    assert again.json == {"error": "a connection named 'yard' is already filed"}
    assert (await listed(client))["yard"]["type"] == "well"


async def test_a_secret_that_nothing_resolves_is_filed_and_logged(client, caplog) -> None:
    filed = await file(client, {**YARD, "password": "${NO_SUCH_NAME}"})

    assert filed.status_code == 201
    assert "connection 'yard' password: nothing resolves '${NO_SUCH_NAME}'" in caplog.text
    refused = await create(client, drawing("p"))
    assert refused.status_code == 422
    assert "nothing resolves '${NO_SUCH_NAME}'" in refused.json["error"]


async def test_a_reference_that_is_none_is_refused(client) -> None:
    refused = await file(client, {**YARD, "password": "s3same-open${"})

    assert refused.status_code == 422
    assert "password: a '${' here starts no reference" in refused.json["error"]
    assert "s3same-open" not in refused.text
    assert await listed(client) == {}


HALF = [
    ({"type": "mqtt", "host": "h", "username": "ann"}, "username"),
    ({"type": "opcua", "endpoint": "opc.tcp://h:4840", "password": "${P}"}, "password"),
    (
        {"type": "clickhouse", "url": "http://h", "database": "d", "user": "u", "password": "${P}"},
        "url",
    ),
    (
        {
            "type": "s3",
            "bucket": "readings",
            "access_key_id": "${I}",
            "secret_access_key": "${S}",
            "endpoint": "http://h",
        },
        "endpoint",
    ),
]


@pytest.mark.parametrize(("connection", "path"), HALF, ids=[each["type"] for each, _ in HALF])
async def test_what_no_build_would_take_is_refused(client, connection, path) -> None:
    refused = await file(client, {"id": "x", **connection})

    assert refused.status_code == 422
    errors = [one for one in refused.json["diagnostics"] if one["severity"] == "error"]
    assert [(one["code"], one["path"]) for one in errors] == [("conflict", path)]
    assert await listed(client) == {}


async def test_everything_that_is_wrong_is_told_at_once_with_its_place(client) -> None:
    body = """{
  "id": " ",
  "type": "well", "hots": "a",
  "password": "${YARD_PASS}", "depth": 100
}"""

    refused = await client.simulate_post("/api/connections", body=body)

    assert refused.status_code == 422
    assert refused.json["error"] == (
        "connection ' ' could not be filed: id: this must not be blank "
        "(expected a string that is not blank); "
        "hots: unknown key 'hots' (expected one of host, password, depth); "
        "depth: expected an integer of at least 1 and of at most 99, found 100"
    )
    assert [
        (one["line"], one["column"], one["path"], one["code"], one["suggestion"])
        for one in refused.json["diagnostics"]
    ] == [
        (2, 9, "id", "blank", None),
        (3, 19, "hots", "unknown-key", "did you mean 'host'?"),
        (4, 40, "depth", "out-of-range", None),
    ]
    assert await listed(client) == {}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "the connection could not be filed: expected an object with 'id' and 'type'"),
        ("s3cret", "the connection could not be filed: expected an object with 'id' and 'type'"),
        ({"type": "file", "root": "x"}, "the connection could not be filed: id: this key is"),
        ({**DISK, "id": None}, "the connection could not be filed: id: expected a string"),
        ({**DISK, "id": 3}, "the connection could not be filed: id: expected a string"),
        ({**DISK, "id": "x" * 1001}, "id: a name of 1,001 characters is too long"),
        ({"id": "x"}, "connection 'x' could not be filed: 'type' is required"),
        ({"id": "x", "type": "fiel"}, "connection 'x' could not be filed: type: unknown type \"fi"),
        ({"id": "x", "type": "dummy"}, "connection 'x' could not be filed: type: unknown type"),
        ({"id": "x", "type": "file"}, "connection 'x' could not be filed: root: this key is"),
    ],
)
async def test_what_is_no_connection_is_refused(client, document, reason) -> None:
    refused = await file(client, document)

    assert refused.status_code == 422
    assert reason in refused.json["error"]
    assert "s3cret" not in refused.text
    assert len(refused.json["diagnostics"]) == 1
    assert await listed(client) == {}


async def test_a_kind_is_suggested(client) -> None:
    refused = await file(client, {"id": "x", "type": "fiel", "root": "data"})

    assert refused.json["diagnostics"][0]["suggestion"] == "did you mean 'file'?"


@pytest.mark.parametrize("key", ["ID", "idd", "ids"])
async def test_a_misspelt_id_is_one_mistake(client, key) -> None:
    refused = await file(client, {key: "x", "type": "file", "root": "data"})

    [diagnostic] = refused.json["diagnostics"]
    assert (diagnostic["code"], diagnostic["path"]) == ("unknown-key", key)
    assert diagnostic["suggestion"] == "did you mean 'id'?"


async def test_a_key_given_twice_is_refused_together_with_the_rest(client) -> None:
    refused = await client.simulate_post(
        "/api/connections", body='{"id": "a", "id": "b", "type": "file"}'
    )

    assert refused.status_code == 422
    assert [one["code"] for one in refused.json["diagnostics"]] == ["missing-key", "duplicate-key"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"id": ', {}, 400),
        (b"", {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b'{"id": "x"}'.ljust(2 * 1024 * 1024 + 1), {}, 413),
    ],
)
async def test_a_body_that_is_none_is_refused_unread(client, body, headers, status) -> None:
    refused = await client.simulate_post("/api/connections", body=body, headers=headers)

    assert refused.status_code == status
    assert "error" in refused.json


async def test_a_plain_setting_that_looks_like_a_reference_is_filed_and_logged(
    client, caplog
) -> None:
    filed = await file(client, {**YARD, "host": "${HOST}"})

    assert filed.status_code == 201
    assert "connection 'yard' host: '${' is taken as it stands here" in caplog.text


async def test_a_connection_reaches_the_pipelines_that_are_built_later(client) -> None:
    before = await create(client, drawing("p"))
    await file(client, YARD)
    after = await create(client, drawing("p"))

    assert before.status_code == 422
    assert after.status_code == 201
    assert LET_DOWN == [("xs3same-open", 9)]


async def test_what_runs_keeps_what_it_read(client) -> None:
    await file(client, YARD)
    await create(client, drawing("early"))
    await client.simulate_delete("/api/pipelines/early")

    await remove(client, "yard")
    await file(client, {**YARD, "depth": 20})
    late = await create(client, drawing("late"))

    assert late.status_code == 201
    assert LET_DOWN == [("xs3same-open", 9), ("xs3same-open", 20)]


async def test_what_is_removed_is_gone(client) -> None:
    await file(client, YARD)
    await file(client, DISK)

    removed = await remove(client, "yard")
    again = await remove(client, "yard")

    assert (removed.status_code, removed.content) == (204, b"")
    assert list(await listed(client)) == ["disk"]
    assert again.status_code == 404
    assert again.json == {"error": "no connection named 'yard' (expected one of disk)"}


async def test_of_none_there_is_none_to_name(client) -> None:
    assert (await remove(client, "yard")).json == {
        "error": "no connection named 'yard' (none is filed)"
    }


@pytest.mark.parametrize("name", ["a/b", "a b", "grün", "%2F", "a?b#c", ".."])
async def test_any_name_can_be_addressed(client, name) -> None:
    filed = await file(client, {**DISK, "id": name})

    assert filed.status_code == 201
    assert (await remove(client, name)).status_code == 204


async def test_a_connection_in_use_stays_and_who_uses_it_is_told_in_order(client) -> None:
    await file(client, YARD)
    for id in ("second", "first", "10"):
        await create(client, drawing(id))

    refused = await remove(client, "yard")

    assert refused.status_code == 409
    assert refused.json == {"error": "connection 'yard' is in use by 10, first, second"}
    assert list(await listed(client)) == ["yard"]


async def test_an_output_uses_a_connection_as_well(client, tmp_path) -> None:
    await file(client, {**DISK, "root": str(tmp_path)})
    writing = [{"type": "file", "connection": "disk", "path": "out"}]
    tick = [{"type": "dummy", "duration": 3600}]
    created = await create(client, {"id": "p", "inputs": tick, "outputs": writing})

    refused = await remove(client, "disk")
    await client.simulate_delete("/api/pipelines/p")
    removed = await remove(client, "disk")

    assert created.status_code == 201
    assert refused.json == {"error": "connection 'disk' is in use by p"}
    assert removed.status_code == 204


async def test_a_failed_pipeline_still_uses_its_connection(client) -> None:
    await file(client, {**YARD, "depth": 1})
    await create(client, drawing("dry"))
    while (await client.simulate_get("/api/pipelines")).json[0]["status"] != "failed":
        pass

    assert (await remove(client, "yard")).status_code == 409


async def test_a_pipeline_that_is_refused_uses_nothing(client) -> None:
    await file(client, YARD)
    refused = await create(client, {**drawing("p"), "outputs": [{"type": "nothing"}]})

    assert refused.status_code == 422
    assert (await remove(client, "yard")).status_code == 204


async def test_what_is_named_and_not_filed_is_told_with_what_is_of_its_kind(client) -> None:
    for connection in (YARD, {**YARD, "id": "barn"}, DISK):
        await file(client, connection)

    unknown = await create(client, drawing("p", "yrad"))
    other = await create(client, drawing("p", "disk"))

    assert unknown.status_code == other.status_code == 422
    [missing] = unknown.json["diagnostics"]
    assert (missing["path"], missing["message"], missing["expected"], missing["suggestion"]) == (
        "inputs[0].rope.well",
        "there is no well connection 'yrad'",
        "one of barn, yard",
        "did you mean 'yard'?",
    )
    [wrong] = other.json["diagnostics"]
    assert wrong["message"] == "'disk' is a file connection, and a well connection is needed"
    assert wrong["expected"] == "one of barn, yard"


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("DELETE", "/disk")])
async def test_a_page_of_another_site_changes_nothing(
    service: Service, method: str, path: str
) -> None:
    asked = Exchange(
        Application(service),
        method,
        f"/api/connections{path}",
        headers=[(b"sec-fetch-site", b"cross-site")],
        body=[json.dumps(DISK).encode()],
    )

    await asked.run()

    assert asked.status == 403
    assert len(service.engine.connections) == 0


async def test_a_root_outside_of_the_data_directory_is_refused(client, tmp_path) -> None:
    refused = await file(client, {**DISK, "root": "/somewhere"})
    filed = await file(client, {**DISK, "root": str(tmp_path / "inside")})

    assert (refused.status_code, filed.status_code) == (422, 201)
    assert [one["path"] for one in refused.json["diagnostics"]] == ["root"]
