"""Every screen can be used by everybody: axe-core finds nothing against WCAG 2.1 AA."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Console
from tests.console.people import guarded
from tests.console.traffic import passing

REPOSITORY = Path(__file__).parent.parent.parent
SCREENS = ("", "p/press-readings/live", "p/orders/failures", "p/nothing", "wall")
"""Addresses of screens; others are added as they come."""
OURS = ("", "p/nothing", "wall")
"""Those whose controls are large enough for a finger."""
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
SMALLEST = 40
"""Pixels of height that a control has at least where a finger points at it."""


@cache
def axe() -> str:
    """Return the source of what looks for barriers."""
    command = [sys.executable, str(REPOSITORY / "scripts" / "console.py"), "axe"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Path(said.strip()).read_text()


def barriers(page: Page) -> list[str]:
    """Return what keeps somebody from using what is shown."""
    page.evaluate(axe())  # as the debugger of a browser does: no policy of the page is in the way
    found = page.evaluate(
        "(rules) => axe.run(document, { runOnly: rules, resultTypes: ['violations'] })", [*RULES]
    )
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def small(page: Page) -> list[str]:
    """Return the controls that are too low for a finger."""
    found: list[str] = page.evaluate(
        """(least) => [...document.querySelectorAll("button, a, input, select, [role=tab]")]
          .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height > 0)
          .filter((it) => Math.max(it.getBoundingClientRect().height,
                                   it.closest("label")?.getBoundingClientRect().height ?? 0) < least)
          .map((it) => it.outerHTML.slice(0, 160))""",
        SMALLEST,
    )
    return found


@pytest.mark.parametrize("address", SCREENS)
def test_a_screen_has_no_barriers(console: Console, address: str) -> None:
    page = console.open(address)
    with passing(console.server, "press-readings", {"press": "north", "temp": 71}, each=3):
        expect(page.get_by_text("1 failing")).to_be_visible()

    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if console.look.is_narrow and address in OURS:
        assert small(page) == []


class TestSignIn:
    @pytest.fixture
    def options(self, tmp_path: Path) -> tuple[str, ...]:
        return guarded(tmp_path)

    def test_sign_in_has_no_barriers(self, console: Console) -> None:
        page = console.open()
        expect(page.get_by_role("heading", name="Sign in to headrace")).to_be_visible()

        assert barriers(page) == []
        assert small(page) == []


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
