"""The walk of `docs/console.md`, from an empty server to an alarm, and its pictures."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from playwright.sync_api import expect

from tests.console.browser import WIDE, Console
from tests.console.pictures import KEPT, MOST_BYTES, take

PAGE = KEPT.parent / "console.md"
TEXT = PAGE.read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def config() -> Any:
    """Give the config that the walk begins with."""
    return yaml.safe_load(blocks("yaml")[0])


def test_from_an_empty_server_to_an_alarm(console: Console) -> None:
    page = console.open()
    for text in blocks("yaml")[1:]:
        page.request.post(f"{console.origin}/api/pipelines", data=yaml.safe_load(text))
    expect(console.card("alarms")).to_be_visible()
    _show(console, "overview")

    console.open("dryrun/alarms")
    page.get_by_label("messages", exact=True).fill(blocks("json")[0])
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="at 5 s, reducer, made of 2 messages: 1 3").click()
    chosen = page.get_by_role("complementary", name="what is chosen")
    expect(chosen).to_contain_text("93")
    expect(page.get_by_role("row", name="message 0")).to_contain_text("greater_than 85")
    page.get_by_text("4 messages given").click()
    _show(console, "dry-run")

    console.open("p/alarms/live")
    expect(page.get_by_role("heading", name="alarms", level=2)).to_be_visible()
    [sent] = re.findall(r"curl -d '(.*?)'", TEXT)
    console.server.post("readings", json.loads(sent))
    expect(page.get_by_role("listitem").filter(has_text='"peak":93')).to_be_visible()
    _show(console, "alarm")


def _show(console: Console, name: str) -> None:
    if console.look is WIDE:
        take(console, name)


def test_the_page_shows_pictures_that_are_there_and_small() -> None:
    shown = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", TEXT)

    assert sorted(shown) == sorted(picture.name for picture in KEPT.iterdir())
    assert all((KEPT / name).stat().st_size < MOST_BYTES for name in shown)
