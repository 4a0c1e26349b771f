"""The examples of the served description are sent as they stand, and taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.web.resources import ENDPOINTS
from tests.clients import Answer
from tests.forked import serving
from tests.server import Server, settled

LOGIN = next(each.example for each in ENDPOINTS if each.operation == "login")


def examples(description: dict[str, Any]) -> Iterator[tuple[str, str, Any, set[int]]]:
    """Yield method, path, body and how success is answered, in the order of the description."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if "requestBody" not in operation:
                continue
            for parameter in operation.get("parameters", ()):
                path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
            body = operation["requestBody"]["content"]["application/json"]["example"]
            yield method.upper(), path, body, {int(s) for s in operation["responses"] if s < "300"}


def sent(server: Server, method: str, path: str, body: Any) -> Answer:
    return server.request(method, path, json.dumps(body).encode())


def test_each_is_answered_with_success(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        described = [*examples(server.get("/api/openapi.json").value)]
        answers = [
            (path, wanted, sent(server, method, path, body))
            for method, path, body, wanted in described
        ]
        printed = json.loads(server.out.wait()[0])

    assert len(answers) == 10
    assert [
        (path, answer.body) for path, wanted, answer in answers if answer.status not in wanted
    ] == []
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
