"""What a save writes and a revert costs shows before either is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.rules import rule
from tests.server import Server

CONFIG = """# The press hall.
pipelines:
  # what the presses say
  - id: readings
    inputs: [{ type: http }]

  - id: means
    inputs: [{ type: http }]
    transforms:
      - { type: buffer, size: 100 }
state:
  machines: { max_keys: 500 }
"""
ADDED = {
    "id": "alarms",
    "inputs": [{"type": "http"}],
    "transforms": [{"type": "buffer", "size": 10}],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give a file that somebody has written by hand."""
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def create(server: Server) -> None:
    """Create a pipeline that the file does not have, as another client does."""
    headers = {"Content-Type": "application/json"}
    body = json.dumps(ADDED).encode()
    assert server.request("POST", "/api/pipelines", body, headers).status == 201


@rule(46)
def test_a_save_shows_name_difference_and_what_is_lost_first(
    console: Console, config: Path
) -> None:
    create(console.server)
    page = console.open("save")

    expect(page.get_by_role("textbox", name="Name of the file")).to_have_value("config.yaml")
    expect(page.get_by_text("Lost from")).to_contain_text("2 comments, 1 blank line")
    means = page.get_by_role("textbox", name="what changes in the meaning of config.yaml")
    expect(means.locator(".cm-changedLine").first).to_contain_text("id: alarms")
    expect(means.locator(".cm-deletedLine")).to_have_count(0)
    console.picture("means")
    page.get_by_role("button", name="As it is written").click()
    difference = page.get_by_role("textbox", name="what changes in config.yaml")
    expect(difference.locator(".cm-deletedChunk").first).to_contain_text("# The press hall.")
    assert config.read_text() == CONFIG
    console.picture("before")

    page.get_by_role("button", name="Save over it").click()

    expect(page.get_by_role("main").get_by_role("status")).to_contain_text(str(config))
    assert "id: alarms" in config.read_text()
    expect(page.get_by_text("The file says word for word what runs.")).to_be_visible()


def test_a_file_that_is_there_is_replaced_only_on_demand(console: Console, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("[]\n")
    page = console.open("save")
    page.get_by_role("textbox", name="Name of the file").fill("other.yaml")
    console.allow("409")

    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("'other.yaml' exists")
    assert other.read_text() == "[]\n"
    page.get_by_role("button", name="Replace it").click()

    expect(page.get_by_role("main").get_by_role("status")).to_contain_text(str(other))
    assert "readings" in other.read_text()


def test_a_name_that_cannot_be_saved_under_is_told(console: Console) -> None:
    page = console.open("save")
    page.get_by_role("textbox", name="Name of the file").fill("../config.yaml")
    console.allow("422")

    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("alert")).to_contain_text("bare name of a file")


@rule(47)
def test_held_messages_that_go_early_stand_on_the_button_of_a_revert(console: Console) -> None:
    create(console.server)
    console.server.post("alarms", [{"n": 1}, {"n": 2}, {"n": 3}])
    console.server.post("means", [{"n": 1}])
    page = console.open("revert")
    expect(page.get_by_role("list", name="plan")).to_contain_text("removed pipeline alarms")
    expect(page.get_by_role("list", name="plan")).to_contain_text("2 pipelines kept")
    console.picture("before")

    page.get_by_role("button", name="Revert: 3 held messages go on early").click()

    expect(page.get_by_role("main").get_by_role("status")).to_have_text(
        "What runs is what the file says."
    )
    assert {each["id"] for each in console.server.get("/api/pipelines").value} == {
        "means",
        "readings",
    }


def test_a_file_with_a_mistake_reverts_nothing_and_is_told(console: Console, config: Path) -> None:
    config.write_text(CONFIG.replace("type: http", "type: htp"))
    console.allow("500")

    page = console.open("revert")

    expect(page.get_by_role("alert")).to_contain_text("htp")
    expect(page.get_by_role("button", name="Revert")).to_have_count(0)
