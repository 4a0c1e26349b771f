"""Every screen can be used by everybody: axe-core finds nothing against WCAG 2.1 AA."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console.barriers import barriers, hindering
from tests.console.browser import Console
from tests.console.people import guarded
from tests.console.traffic import passing

SCREENS = ("", "p/press-readings/live", "p/orders/failures", "p/nothing", "wall")
"""Addresses of screens that no other test ends at; where one ends is looked at by its fixture."""


@pytest.mark.parametrize("address", SCREENS)
def test_a_screen_has_no_barriers(console: Console, address: str) -> None:
    page = console.open(address)
    with passing(console.server, "press-readings", {"press": "north", "temp": 71}, each=3):
        expect(page.get_by_text("1 failing")).to_be_visible()

    assert hindering(page, is_narrow=console.look.is_narrow) == []


class TestSignIn:
    @pytest.fixture
    def options(self, tmp_path: Path) -> tuple[str, ...]:
        return guarded(tmp_path)

    def test_sign_in_has_no_barriers(self, console: Console) -> None:
        page = console.open()
        expect(page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()

        assert hindering(page, is_narrow=True) == []


def test_the_menu_and_the_commands_have_no_barriers(console: Console) -> None:
    page = console.open()
    expect(page.get_by_text("10 fine")).to_be_visible()

    page.get_by_role("button", name="more").click()
    expect(page.get_by_role("link", name="Wall view")).to_be_visible()
    assert barriers(page) == []
    console.picture("menu")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("A pipeline, or what to do")).to_be_focused()
    assert barriers(page) == []


def test_forms_dialogs_and_plans_have_no_barriers(console: Console) -> None:
    is_narrow = console.look.is_narrow
    page = console.open("connections")
    page.get_by_role("button", name="Connection", exact=True).click()
    form = page.get_by_role("form", name="new connection")
    form.get_by_role("combobox", name="kind").select_option("redis")
    expect(form.get_by_role("textbox", name="url", exact=True)).to_be_visible()
    assert hindering(page, is_narrow=is_narrow) == []
    form.get_by_role("textbox", name="name", exact=True).fill("cache")
    form.get_by_role("textbox", name="url", exact=True).fill("redis://cache")
    form.get_by_role("button", name="Add").click()

    cache = page.get_by_role("list", name="connections").get_by_role("listitem", name="cache")
    remove = cache.get_by_role("button", name="Remove")
    remove.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert hindering(page, is_narrow=is_narrow) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(remove).to_be_focused()

    console.server.request("DELETE", "/api/pipelines/audit")
    console.open("revert")
    expect(page.get_by_role("list", name="plan")).to_contain_text("added pipeline audit")
    assert hindering(page, is_narrow=is_narrow) == []
