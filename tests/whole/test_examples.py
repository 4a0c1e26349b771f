"""The examples of the served description are sent as they stand, and taken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from headrace.web.resources import ENDPOINTS
from tests.clients import Answer
from tests.forked import serving
from tests.server import Server, settled

NOTHING: Mapping[str, str] = MappingProxyType({})
LOGIN = next(each.example for each in ENDPOINTS if each.operation == "login")


Example = tuple[str, str, Any, dict[str, str], set[int]]
"""Method, path, body, headers, and how success is answered."""


def examples(description: dict[str, Any]) -> Iterator[Example]:
    """Yield the examples in the order of the description."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if "requestBody" not in operation:
                continue
            given = {"path": {}, "header": {}, "query": {}}
            for parameter in operation.get("parameters", ()):
                given[parameter["in"]][parameter["name"]] = parameter.get("example")
            at = path.format_map(given["path"])
            body = operation["requestBody"]["content"]["application/json"]["example"]
            wanted = {int(s) for s in operation["responses"] if s < "300"}
            yield method.upper(), at, body, given["header"], wanted


def sent(
    server: Server, method: str, path: str, body: Any, headers: Mapping[str, str] = NOTHING
) -> Answer:
    return server.request(method, path, json.dumps(body).encode(), headers)


def test_each_is_answered_with_success(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        described = [*examples(server.get("/api/openapi.json").value)]
        answers = [
            (path, wanted, sent(server, method, path, body, headers))
            for method, path, body, headers, wanted in described
        ]
        printed = json.loads(server.out.wait()[0])

    assert len(answers) == 15
    [refused] = [(path, answer) for path, wanted, answer in answers if answer.status not in wanted]
    assert refused[0] == "/api/pipelines/press-line/dead-letters/replay"
    assert "has no 'dead_letters'" in refused[1].value["error"]  # it takes a config that keeps them
    assert printed["batch"] == [{"machine": "press", "celsius": 81.5, "site": "north"}]
    said = {path: answer.value for path, _, answer in answers if answer.status == 200}
    assert said["/api/scripts/dry-run"]["outcome"] == "emitted"
    assert said["/api/pipelines/dry-run"]["outcome"] == "ran"
    assert said["/api/inputs/sample"]["outcome"] == "sampled"
    assert (tmp_path / "plant.yaml").exists()


@pytest.mark.long
def test_the_name_and_password_sign_in_where_there_is_such_an_account(tmp_path: Path) -> None:
    users = {LOGIN["username"]: {"password": LOGIN["password"]}}
    options = settled(tmp_path, auth={"type": "basic", "users": users})
    with serving(tmp_path, [], *options) as server:
        answer = sent(server, "POST", "/api/auth/login", LOGIN)

    assert answer.status == 200
    assert answer.value["username"] == LOGIN["username"]
