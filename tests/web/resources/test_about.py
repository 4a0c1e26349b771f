"""What the server says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args

import falcon.testing
import jsonschema
import pytest

from headrace.compiler.errors import FailureClass
from headrace.web.app import Application
from headrace.web.auth.access import Access
from headrace.web.resources import ENDPOINTS
from headrace.web.resources.about import ASSETS
from tests.ledgers import CATALOGUE, SOURCE
from tests.web.conftest import waited_for


@pytest.fixture
async def document(client) -> dict[str, Any]:
    got = await client.simulate_get("/api/openapi.json")
    described: dict[str, Any] = got.json
    return described


async def test_the_description_is_valid_openapi_3_1(document) -> None:
    assert document["openapi"] == "3.1.0"

    # Long to import, and wanted by this test alone.
    import_module("openapi_spec_validator").validate(document)


def inner(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside of what describes something."""
    for each in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(each, dict):
            yield each
        if isinstance(each, dict | list):
            yield from inner(each)


async def test_every_object_has_a_name(document) -> None:
    # A generator of clients makes a class of each, and of one without a name guesses the name.
    schemas = document["components"]["schemas"]

    nameless = [
        each
        for each in [
            *inner(document["paths"]),
            *(one for all in schemas.values() for one in inner(all)),
        ]
        if each.get("type") == "object" and "properties" in each
    ]

    assert nameless == []


async def test_every_variant_has_a_name_and_the_word_that_tells_it(document) -> None:
    schemas = document["components"]["schemas"]
    unions = [each for each in inner(document) if "oneOf" in each]

    assert len(unions) > 10
    for union in unions:
        variants = [schemas[each["$ref"].rpartition("/")[2]] for each in union["oneOf"]]
        if "discriminator" not in union:
            continue
        key, mapping = union["discriminator"].values()
        assert list(mapping.values()) == [each["$ref"] for each in union["oneOf"]]
        assert [each["properties"][key] for each in variants] == [
            {"const": word} for word in mapping
        ]


async def test_unions_without_a_word_are_those_of_which_a_key_tells_the_variant(document) -> None:
    schemas = document["components"]["schemas"]
    wordless = [each for each in inner(document) if "oneOf" in each and "discriminator" not in each]

    assert wordless == [
        schemas["FilterTransform"],
        schemas["ParseTransform"],
        schemas["UiEvent"]["properties"]["payload"],
        schemas["CaptureLine"],
    ]


async def test_every_row_of_the_table_is_described(document) -> None:
    described = {
        (path, method.upper()): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }

    assert set(described) == {(row.path, row.method) for row in ENDPOINTS}
    for row in ENDPOINTS:
        operation = described[row.path, row.method]
        assert operation["operationId"] == row.operation
        assert operation["tags"] == [row.tag]
        assert operation["x-headrace-access"] == row.access.name.lower()


async def test_public_operations_need_no_credential_and_others_say_what_is_refused(
    document,
) -> None:
    for row in ENDPOINTS:
        operation = document["paths"][row.path][row.method.lower()]
        refused = {"401", "403"} & set(operation["responses"])
        own = {str(status) for status in row.responses}
        match row.access:
            case Access.PUBLIC:
                assert operation["security"] == []
                assert refused <= own
            case _ if row.takes_anybody:
                assert {} in operation["security"]
                assert refused <= own
            case Access.READ:
                assert refused == {"401"}
            case Access.ADMIN:
                assert refused == {"401", "403"}


async def test_every_body_has_an_example_that_is_one(document) -> None:
    bodies = {
        operation["operationId"]: operation["requestBody"]["content"]["application/json"]
        for operations in document["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    }

    assert set(bodies) == {row.operation for row in ENDPOINTS if row.body is not None}
    for body in bodies.values():
        schema = {**body["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(body["example"])


async def test_the_ways_in_are_named(document) -> None:
    assert document["components"]["securitySchemes"] == {
        "basicAuth": {"type": "http", "scheme": "basic"},
        "cookieAuth": {"type": "apiKey", "in": "cookie", "name": "headrace_session"},
        "bearerAuth": {"type": "http", "scheme": "bearer"},
    }


async def test_the_components_are_those_of_the_catalogue(client, components) -> None:
    got = await client.simulate_get("/api/docs")

    assert [(doc["family"], doc["kind"]) for doc in got.json] == [
        (component.family, component.kind) for component in components
    ]


async def test_a_component_tells_how_it_fails_and_how_that_is_known(service, document) -> None:
    service.catalogue = CATALOGUE
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        docs = (await client.simulate_get("/api/docs")).json

    [ledger] = [each for each in docs if each["kind"] == "ledger"]
    assert [(each["class"], each["codes"], each["mark"]) for each in ledger["failures"]] == [
        ("unavailable", ["503", "LOCKED"], "tried"),
        ("unavailable", ["507"], "documented"),
        ("unavailable", ["SHUT"], "tried"),
        ("misconfigured", ["404"], "documented"),
        ("unclear", [], "tried"),
    ]
    assert ledger["failures"][3] == {
        "name": "ledger.output.fails.no_book",
        "class": "misconfigured",
        "codes": ["404"],
        "text": "there is no `book` of that name",
        "mark": "documented",
        "source": SOURCE,
    }
    assert [each["failures"] for each in docs if each["kind"] == "failures"] == [[]]
    schema = {**document, "$ref": "#/components/schemas/ComponentDoc"}
    jsonschema.Draft202012Validator(schema).validate(ledger)


async def test_wherever_the_class_of_a_failure_is_described_it_is_one_of_four(document) -> None:
    schemas = document["components"]["schemas"]

    for name in ("ErrorSignature", "PipelineFailure", "FailureDoc"):
        assert schemas[name]["properties"]["class"]["enum"] == [*get_args(FailureClass)]
        assert "class" in schemas[name]["required"]


async def test_the_page_loads_only_what_is_served_here(client) -> None:
    page = await client.simulate_get("/api/reference")

    assert page.headers["Content-Type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sorted(loaded) == ["data:,", *sorted(f"reference/{name}" for name in ASSETS)]
    for url in loaded:
        if not url.startswith("data:"):
            asset = await client.simulate_get(f"/api/{url}")
            assert asset.status_code == 200
            assert asset.content
    assert "<script>" not in page.text


async def test_the_page_may_ask_no_other_host(client) -> None:
    page = await client.simulate_get("/api/reference")
    start = await client.simulate_get("/api/reference/start.js")

    policy = dict(
        directive.split(" ", 1) for directive in page.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert not re.search(r"https?:", page.headers["Content-Security-Policy"])
    assert not re.search(r"https?:|//", page.text + start.text)
    assert "validatorUrl: null" in start.text


async def test_the_renderer_knows_openapi_3_1(client) -> None:
    # Version 4 does not, and shows an error in place of the description.
    renderer = await client.simulate_get("/api/reference/swagger-ui-bundle.js")

    assert "oas31" in renderer.text


@pytest.mark.parametrize("name", ["nope.js", "..%2F..%2Fapp.py", "%2e%2e", "index.html", ""])
async def test_no_other_file_is_served(client, name) -> None:
    got = await client.simulate_get(f"/api/reference/{name}")

    assert got.status_code == 404
