"""`GET /api/config/text`: what runs and what is on file as texts, and no credential in either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read
from headrace.web.files.reading import Files
from headrace.web.service import Service
from tests.web.jsonengine import JsonEngine

FEED = {
    "id": "feed",
    "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "hunter2-${TOKEN}"}}],
    "transforms": [
        {"type": "http", "url": "https://ann:open-sesame@plant.example/", "verb": "POST"}
    ],
}
READER = {"id": "all", "inputs": [{"type": "pipeline", "upstream": "feed"}]}
FILED = """\
# the old token was hunter2-
state:
  seen: {}
pipelines:
  - id: feed
    inputs:
      - type: http
        auth: { type: bearer, token: "hunter2-${TOKEN}" }  # ask ann
    transforms:
      - type: http
        verb: POST
        url: https://ann:open-sesame@plant.example/
"""


@pytest_asyncio.fixture
async def service(tmp_path: Path, engine: JsonEngine, components: Catalogue) -> Service:
    """Return a server with a config file."""
    (tmp_path / "plant.yaml").write_text(FILED)
    engine.move(tmp_path)
    files = Files(tmp_path / "plant.yaml")
    return Service(engine, components, engine.clock, is_ready=True, files=files)


async def text(client: Any, query: str = "") -> str:
    answer = await client.simulate_get("/api/config/text", query_string=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    told: str = answer.text
    return told


def refiled(service: Service, config: str, name: str = "plant.yaml") -> None:
    """Have another text on file."""
    file = service.filing.directory / name
    file.write_text(config)
    service.filing.files = Files(file)


async def test_what_runs_is_told_as_a_save_writes_it(client, monkeypatch, tmp_path):
    monkeypatch.setenv("TOKEN", "resolved")
    for config in (FEED, READER):
        created = await client.simulate_post("/api/pipelines", json=config)
        assert created.status_code == 201, created.text
    await client.simulate_post("/api/config/save", json={"name": "saved.yaml"})
    await client.simulate_post("/api/config/save", json={"name": "saved.json"})

    for query, name in (
        ("", "saved.yaml"),
        ("format=json", "saved.json"),
        ("of=running", "saved.yaml"),
    ):
        saved = (tmp_path / name).read_text()
        for written, shown in (("hunter2-", "***"), ("ann:open-sesame", "***")):
            assert written in saved
            saved = saved.replace(written, shown)
        told = await text(client, query)
        assert told.replace("'", "") == saved.replace(
            "'", ""
        )  # a text that begins with * has quotes
        assert "resolved" not in told


async def test_the_file_is_told_as_it_is_but_for_its_credentials(client):
    expected = FILED.replace(
        "https://ann:open-sesame@plant.example/", '"https://***@plant.example/"'
    ).replace("hunter2-", "***")

    assert await text(client, "of=file") == await text(client, "of=file&format=yaml") == expected


async def test_in_the_other_format_the_file_is_written_anew(client):
    told = json.loads(await text(client, "of=file&format=json"))

    assert told == {
        "state": {"seen": {}},
        "pipelines": [
            {
                **FEED,
                "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "***${TOKEN}"}}],
                "transforms": [
                    {"type": "http", "url": "https://***@plant.example/", "verb": "POST"}
                ],
                "outputs": [],
            }
        ],
    }


@pytest.mark.parametrize(
    "token",
    [
        "hunter2",
        "'hunter2'",
        '"hunt\\u0065r2"',
        "|-\n          hunter2",
        ">-\n          hunter2\n\n          hunter2",
        "&t hunter2",
        "&t\n          'hunt''er2'",
        "hunter2${NAME}hunter2",
        "'abc'",
        '"#"',
    ],
)
async def test_however_a_credential_is_written_it_is_left_out(client, service, token):
    config = (
        "- id: p\n  inputs:\n    - type: http\n      auth:\n        type: bearer\n"
        f"        token: {token}\n  outputs: [] # end\n"
    )
    refiled(service, config)

    told = await text(client, "of=file")

    *_, shown, last = told.splitlines()
    assert last == "  outputs: [] # end"
    assert shown.strip().removeprefix("token: &t").removeprefix("token: ").strip() in (
        '"***"',
        '"***${NAME}***"',
    )


async def test_a_credential_under_a_name_is_left_out_where_it_is_written(client, service):
    each = "- {{id: {0}, inputs: [{{type: http, auth: {{type: bearer, token: {1}}}}}]}}\n"
    refiled(service, each.format("a", "&it ab") + each.format("b", "*it"))

    assert await text(client, "of=file") == each.format("a", '&it "***"') + each.format("b", "*it")


async def test_json_on_file_is_json_still(client, service):
    config = json.dumps([{**FEED, "id": 'a"b'}], indent=1)
    refiled(service, config, "plant.json")

    told = await text(client, "of=file")

    assert json.loads(told)[0]["inputs"][0]["auth"]["token"] == "***${TOKEN}"
    assert told.count("\n") == config.count("\n")


async def test_what_shows_can_be_read_again(client, components: Catalogue):
    for query in ("of=file", "of=file&format=json"):
        document = read(await text(client, query), None, "json" if "json" in query else "yaml")
        _, said = load_program(document, components)
        assert {each.code for each in said} <= {"not-a-url", "unresolved-secret"}


async def test_without_a_pipeline_the_file_is_told_as_it_is(client, service):
    refiled(service, "# nothing yet\n[]\n")

    assert await text(client, "of=file") == "# nothing yet\n[]\n"


async def test_a_pipeline_without_an_id_has_none_in_the_other_format_either(client, service):
    refiled(service, "- inputs: [{type: http}]\n")

    told = json.loads(await text(client, "of=file&format=json"))

    assert told == [{"inputs": [{"type": "http"}], "transforms": [], "outputs": []}]


@pytest.mark.parametrize(
    "config", ["- id: p\n  inputs: [{type: http, auth: {token: hunter2}}]\n", "- {", "[1"]
)
async def test_a_file_that_is_refused_is_not_told_and_why_it_is_refused_is(client, service, config):
    refiled(service, config)

    answer = await client.simulate_get("/api/config/text", query_string="of=file")

    assert answer.status_code == 409
    assert answer.json["error"].startswith("its text is not shown: ")
    assert answer.json["diagnostics"]
    assert "hunter2" not in answer.text


async def test_a_file_that_is_gone_is_no_text(client, service):
    (service.filing.directory / "plant.yaml").unlink()

    answer = await client.simulate_get("/api/config/text", query_string="of=file")

    assert (answer.status_code, answer.json["diagnostics"][0]["code"]) == (409, "missing-file")


@pytest.mark.parametrize("query", ["of=", "of=disk", "format=toml", "format="])
async def test_a_malformed_parameter_is_refused(client, query):
    answer = await client.simulate_get("/api/config/text", query_string=query)

    assert answer.status_code == 400
    assert "expected one of " in answer.json["error"]
