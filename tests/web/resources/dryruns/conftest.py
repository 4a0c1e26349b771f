"""What the tests of dry runs ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jsonschema
import pytest

from headrace.web.openapi import described
from headrace.web.service import Service
from tests.web.resources.dryruns.bodies import Client, Post


@pytest.fixture
def post(client: Client, service: Service) -> Callable[[str, str, dict[str, Any]], Any]:
    """Post a body, and see that the answer is what the description says."""
    description = described(service.catalogue)

    async def posted(path: str, schema: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await client.simulate_post(path, json=body)
        assert answer.status_code == 200, answer.text
        reference = {"$ref": f"#/components/schemas/{schema}", **description}
        jsonschema.Draft202012Validator(reference).validate(answer.json)
        said: dict[str, Any] = answer.json
        return said

    return posted


@pytest.fixture
def dry_run(post: Any) -> Post:
    return partial(post, "/api/pipelines/dry-run", "PipelineDryRunResponse")


@pytest.fixture
def try_script(post: Any) -> Post:
    return partial(post, "/api/scripts/dry-run", "DryRunResponse")
