"""The walk of `docs/console.md`, from an empty server to an alarm, and its pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.browser import WIDE, Console
from tests.console.passing import shown_when_told
from tests.console.pictures import KEPT, MOST_BYTES, take
from tests.console.writing import exchange, problems, settled, write

PAGE = KEPT.parent / "console.md"
TEXT = PAGE.read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give the file that the walk begins with."""
    path = tmp_path / "config.yaml"
    path.write_text(blocks("yaml")[0])
    return path


def test_from_an_empty_server_to_an_alarm_and_back(console: Console, config: Path) -> None:
    readings, alarms = blocks("yaml")[1:]
    given, renamed = blocks("json")
    page = console.open()

    begun(console, readings)
    made(console, "readings")
    begun(console, alarms)
    expect(problems(page)).to_contain_text("bufer")
    show(console, "editor")
    page.get_by_role("button", name="use buffer").click()
    made(console, "alarms")
    page.get_by_role("link", name="close").click()
    expect(console.card("alarms")).to_be_visible()
    show(console, "overview")

    console.card("alarms").click()
    page.get_by_role("link", name="Dry run").click()
    page.get_by_label("messages", exact=True).fill(given)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="at 5 s, reducer, made of 2 messages: 1 3").click()
    chosen = page.get_by_role("complementary", name="what is chosen")
    expect(chosen).to_contain_text("93")
    expect(page.get_by_role("row", name="message 0")).to_contain_text("greater_than 85")
    page.get_by_text("4 messages given").click()
    show(console, "dry-run")

    console.open("p/alarms/live")
    expect(page.get_by_role("heading", name="alarms", level=2)).to_be_visible()
    [sent] = re.findall(r"curl -d '(.*?)'", TEXT)
    came = page.get_by_role("listitem").filter(has_text='"temp":93')
    shown_when_told(console, came, *json.loads(sent), pipeline="readings")
    expect(page.get_by_role("listitem").filter(has_text='"peak":93')).to_be_visible()
    show(console, "alarm")

    page.get_by_label("what is shown of alarms").get_by_role("link", name="stages").click()
    page.get_by_role("button", name="Trace the next batch").click()
    why = page.get_by_text("'temp' is missing").first
    shown_when_told(console, why, json.loads(renamed), pipeline="readings")
    mended(console, json.loads(renamed))
    save_and_revert(console, config)


def begun(console: Console, text: str) -> None:
    """Begin a pipeline with an example, and write another text in its place."""
    page = console.page
    console.open()
    if console.look.is_narrow:
        page.get_by_role("button", name="more").click()
        page.get_by_role("link", name="New pipeline").click()
    else:
        page.get_by_role("banner").get_by_role("link", name="Pipeline", exact=True).click()
    page.get_by_role("button", name=re.compile("HTTP to the terminal")).click()
    write(page, text)
    settled(page)


def made(console: Console, id: str) -> None:
    """Review what is written, and have it run."""
    expect(problems(console.page)).to_contain_text("The server would take this.")
    console.page.get_by_role("button", name="Review & apply").click()
    console.page.get_by_role("button", name=f"Create {id}").click()
    expect(console.page.get_by_role("heading", name=id, level=2)).to_be_visible()


def mended(console: Console, message: dict[str, Any]) -> None:
    """Have the alarm read the field by its new name, and see that it comes."""
    page = console.page
    page.get_by_role("complementary").get_by_role("link", name="Edit").click()
    expect(problems(page)).to_contain_text("The server would take this.")
    for _ in range(2):  # in the filter and in the reducer
        exchange(page, "temp", "temperature")
    settled(page)
    page.get_by_role("button", name="Review & apply").click()
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("heading", name="alarms", level=2)).to_be_visible()
    alarm = page.get_by_role("listitem").filter(has_text='"peak":99')
    shown_when_told(console, alarm, message, pipeline="readings")


def save_and_revert(console: Console, config: Path) -> None:
    """Write what runs into the file, remove a pipeline, and go back to what the file says."""
    page = console.open("save")
    expect(page.get_by_role("textbox", name="what changes in the meaning")).to_be_visible()
    page.get_by_role("button", name="Save over it").click()
    expect(page.get_by_text("The file says word for word what runs.")).to_be_visible()
    assert "greater_than" in config.read_text()

    console.open("p/alarms/live")
    page.get_by_role("button", name="more about alarms").click()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("alarms is deleted")).to_be_visible()
    console.open("revert")
    expect(page.get_by_role("list", name="plan")).to_contain_text("added pipeline alarms")
    show(console, "revert")
    page.get_by_role("button", name="Revert", exact=True).click()
    expect(page.get_by_text("What runs is what the file says.")).to_be_visible()
    console.open()
    expect(console.card("alarms")).to_be_visible()


def show(console: Console, name: str) -> None:
    """Take a picture for the page."""
    if console.look is WIDE:
        take(console, name)


def test_the_page_shows_pictures_that_are_there_and_small() -> None:
    shown = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", TEXT)

    assert sorted(shown) == sorted(picture.name for picture in KEPT.iterdir())
    assert all((KEPT / name).stat().st_size < MOST_BYTES for name in shown)
