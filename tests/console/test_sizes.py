"""How much of the page is loaded, and when."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.loaded import Loaded

pytestmark = pytest.mark.wide_only
MOST_TO_CARDS, MOST_WITH_EDITOR = 170, 340


def test_a_page_loads_its_cards_first_and_the_editor_where_it_is_opened(console: Console) -> None:
    loaded = Loaded(console.page)

    page = console.open()
    expect(console.card("press-readings")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert any(name.startswith("layout.worker") for name in loaded.names)
    assert not any(re.match("look|Editor|DryRun|History", name) for name in loaded.names)
    assert 50 < loaded.kilobytes < MOST_TO_CARDS

    console.open("edit/press-readings")
    expect(page.locator(".cm-content")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert any(name.startswith("Editor") for name in loaded.names)
    assert loaded.kilobytes < MOST_WITH_EDITOR
