"""What waits on the disk: on the card of its pipeline, and in the plan of a revert."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.clients import HOST
from tests.console.browser import Console
from tests.console.rules import rule
from tests.server import Server
from tests.services.server import free_port

ID = "orders"


@pytest.fixture
def config() -> Any:
    """Have a pipeline that keeps nothing."""
    return [{"id": "plain", "inputs": [{"type": "http"}], "outputs": []}]


def keep(server: Server, count: int) -> None:
    """Create a pipeline whose server is away, and have it keep so many posts."""
    away = {"type": "http", "url": f"http://{HOST}:{free_port()}/", "retry": {}}
    body = {"id": ID, "inputs": [{"type": "http", "durable": True}], "outputs": [away]}
    headers = {"Content-Type": "application/json"}
    answer = server.request("POST", "/api/pipelines", json.dumps(body).encode(), headers)
    assert answer.status == 201, answer.body
    for n in range(count):
        assert server.post(ID, {"n": n, "text": "x" * 400}).status == 202


@rule(72)
def test_a_card_says_how_much_waits_on_the_disk(console: Console) -> None:
    keep(console.server, 10)
    console.open()

    expect(console.card(ID)).to_contain_text("kB on disk")
    expect(console.card("plain")).not_to_contain_text("on disk")


@rule(73)
def test_what_is_left_over_stands_on_the_button_of_a_revert(console: Console) -> None:
    keep(console.server, 3)
    page = console.open("revert")
    plan = page.get_by_role("list", name="plan")
    expect(plan).to_contain_text(f"removed pipeline {ID}")
    expect(plan).to_contain_text("up to 3 entries on disk left over")

    page.get_by_role("button", name="Revert: up to 3 entries on disk left over").click()

    expect(page.get_by_role("main").get_by_role("status")).to_have_text(
        "What runs is what the file says."
    )
    [left] = console.server.get("/api/stored").value
    assert (left["pipeline_id"], left["entries"], left["left_over"]) == (ID, 3, True)
