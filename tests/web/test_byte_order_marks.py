"""A byte order mark before a body: passed over, as in a file, but no part of a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from falcon.testing import ASGIConductor

from headrace.web.app import Application
from headrace.web.endpoint import Endpoint
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service
from tests.web.exchange import Exchange

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
MARK = b"\xef\xbb\xbf"
CREATED = next(row for row in ENDPOINTS if row.operation == "createPipeline")
WITH_BODY = [row for row in ENDPOINTS if row.body and row.operation != "ingestMessages"]


async def answered(application: Application, row: Endpoint, body: bytes) -> tuple[int, bytes]:
    path = row.path.format(pipeline_id="p", connection_id="disk")
    headers = [(b"if-match", b"*")] if row.is_versioned else []
    exchange = Exchange(application, row.method, path, headers=headers, body=[body, b""])
    await exchange.run()
    return exchange.status, exchange.body


@pytest.mark.parametrize("row", WITH_BODY, ids=lambda row: row.operation)
async def test_it_is_passed_over_in_every_body_but_that_of_messages(
    service: Service, row: Endpoint
) -> None:
    application = Application(service)
    await answered(
        application, CREATED, json.dumps({"id": "p", "inputs": [{"type": "http"}]}).encode()
    )

    plain = await answered(application, row, b"{}")
    marked = await answered(application, row, MARK + b"{}")
    broken = await answered(application, row, b"{")

    assert marked == plain
    assert b"the body is not JSON" in broken[1]
    assert b"the body is not JSON" not in plain[1]


async def test_messages_have_none(client: ASGIConductor) -> None:
    config = json.dumps({"id": "p", "inputs": [{"type": "http"}]}).encode()

    created = await client.simulate_post("/api/pipelines", body=MARK + config)
    refused = await client.simulate_post("/api/pipelines/p/messages", body=MARK + b"1")

    assert (created.status_code, refused.status_code) == (201, 400)


@pytest.mark.parametrize("about", ["Creating a pipeline", "Posting messages"])
def test_the_page_tells_of_both(about: str) -> None:
    section = PAGE.partition(f"\n## {about}\n")[2].partition("\n## ")[0]

    assert "byte order mark" in section
