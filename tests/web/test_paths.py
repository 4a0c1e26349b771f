"""Which paths and methods there are, and who gets through to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.web.app import Application, authorize
from headrace.web.auth.access import Access, Caller, Forbidden, NotSignedIn
from headrace.web.endpoint import Endpoint
from headrace.web.files.reading import Files
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service
from tests.web.cases import declare_machines
from tests.web.lettering import Lettering


def test_an_endpoint_without_an_access_level_keeps_the_server_from_starting(service) -> None:
    open_door = Endpoint(
        method="GET",
        path="/open",
        operation="openDoor",
        tag="health",
        access=None,  # type: ignore[arg-type]
        summary="",
        responses={},
        respond=ENDPOINTS[0].respond,
    )

    with pytest.raises(TypeError, match="openDoor has no access level"):
        Application(service, [open_door])


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.operation)
@pytest.mark.parametrize("held", Access)
def test_a_caller_gets_through_with_the_level_of_the_table_or_a_higher_one(
    row: Endpoint, held: Access
) -> None:
    if held >= row.access:
        authorize(row, Caller(held))
    else:
        refused, said = (
            (Forbidden, "needs 'admin'") if held else (NotSignedIn, "nobody is signed in")
        )
        with pytest.raises(refused, match=f"{row.operation}: {said}"):
            authorize(row, Caller(held))


def addressed(row: Endpoint) -> str:
    """Return the path of an endpoint with names for what it captures."""
    captured = {"pipeline_id": "p", "connection_id": "bus", "bucket": "machines", "stored_id": "1"}
    return row.path.format(**captured, asset="start.js", letter_id="1")


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.operation)
async def test_every_path_names_its_methods(row: Endpoint, client: Any) -> None:
    path = addressed(row)

    refused = await client.simulate_request("PATCH", path)
    options = await client.simulate_options(path)

    assert refused.status_code == 405
    assert row.method in refused.headers["Allow"].split(", ")
    assert refused.json["error"].startswith(f"PATCH {path}: the path takes ")
    assert options.status_code == 200
    assert row.method in options.headers["Allow"].split(", ")
    assert options.content == b""


@pytest.mark.parametrize(
    "row", [row for row in ENDPOINTS if row.method == "GET"], ids=lambda row: row.operation
)
async def test_head_is_get_without_the_body(
    row: Endpoint, client: Any, service: Service, tmp_path: Path
) -> None:
    declare_machines(service)
    await client.simulate_post("/api/pipelines", json={"id": "p", "inputs": [{"type": "http"}]})
    service.filing.files = Files(config=tmp_path / "config.json")
    (tmp_path / "config.json").write_text("[]")
    if row.operation == "getDeadLetter":
        service.engine = Lettering(service.clock)  # others have none of these
    path = addressed(row)

    head = await client.simulate_head(path)

    assert head.status_code == 200
    assert head.content == b""
    if row.ahead:
        assert "Content-Length" not in head.headers  # nobody knows how long a stream is
    else:
        got = await client.simulate_get(path)
        told, wanted = dict(head.headers), dict(got.headers)
        if row.operation == "getMetrics":  # what the process has used has more digits now and then
            length = abs(int(told.pop("content-length")) - int(wanted.pop("content-length")))
            assert length < 20
        assert told == wanted


async def test_head_of_what_is_only_posted_is_refused(client: Any) -> None:
    for path in ("/api/pipelines/p/messages",):
        assert (await client.simulate_head(path)).status_code == 405
        assert (await client.simulate_get(path)).status_code == 405


async def test_an_unknown_path_is_an_api_error(client: Any) -> None:
    for path in (
        "/api",
        "/api/docs/",
        "/nope",
        "/api/pipelines/p/messages/x",
        "/api/state/a/b",
    ):
        answer = await client.simulate_get(path)
        assert answer.status_code == 404
        assert answer.json == {"error": f"GET {path}: no such path"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/pipelines//messages"),
        ("POST", "//api/pipelines/p/messages"),
        ("GET", "//events"),
    ],
)
async def test_a_slash_too_many_is_an_unknown_path(client: Any, method: str, path: str) -> None:
    answer = await client.simulate_request(method, path, body="1")

    assert answer.status_code == 404
    assert answer.json == {"error": f"{method} {path}: no such path"}


CAPTURING = sorted({row.path for row in ENDPOINTS if "{" in row.path})


@pytest.mark.parametrize("path", CAPTURING)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def test_where_an_id_would_be_and_is_none_is_an_unknown_path(
    client: Any, method: str, path: str
) -> None:
    asked = re.sub(r"{\w+}", "", path)

    answer = await client.simulate_request(method, asked, body="1")

    assert answer.status_code == 404
    if method != "HEAD":
        assert answer.json == {"error": f"{method} {asked}: no such path"}


async def test_no_answer_is_sniffed(client: Any) -> None:
    for path in ("/livez", "/nope", "/api/reference", "/api/reference/swagger-ui-bundle.js"):
        answer = await client.simulate_get(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
