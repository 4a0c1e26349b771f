"""Everything by keyboard: commands, finding, and the way through the cards."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.rules import rule
from tests.console.traffic import passing


@rule(59)
@pytest.mark.parametrize("address", ["", "p/audit/history", "wall", "dryrun/fusion"])
def test_a_pipeline_opens_by_its_name_from_any_screen(console: Console, address: str) -> None:
    page = console.open(address)
    expect(page.get_by_role("main")).not_to_contain_text(re.compile("Asking|^$"))

    page.keyboard.press("Control+k")
    page.get_by_placeholder("A pipeline, or what to do").fill("press-m")
    expect(page.get_by_role("dialog")).to_contain_text("press-means")
    expect(page.get_by_role("dialog")).not_to_contain_text("heartbeat")
    console.picture(address.partition("/")[0])
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="press-means", level=2)).to_be_visible()
    assert page.url == f"{console.origin}/#/p/press-means"


def test_a_screen_opens_by_its_name(console: Console) -> None:
    page = console.open()
    expect(console.card("fusion")).to_be_visible()

    page.keyboard.press("Control+k")
    page.get_by_placeholder("A pipeline, or what to do").fill("wall")
    page.keyboard.press("Enter")

    expect(page).to_have_url(f"{console.origin}/#/wall")


def test_a_slash_finds_pipelines_by_name_and_by_what_they_are_made_of(console: Console) -> None:
    page = console.open()
    expect(console.card("fusion")).to_be_visible()
    rows = page.get_by_role("navigation", name="pipelines").get_by_role("listitem")

    page.keyboard.press("/")
    page.keyboard.type("dummy")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("heartbeat")
    page.keyboard.press("Escape")
    page.keyboard.type("windows")
    expect(rows).to_have_count(1)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="pressure-windows", level=2)).to_be_visible()


@pytest.mark.wide_only
def test_tab_visits_cards_enter_opens_one_and_escape_closes_it(console: Console) -> None:
    page = console.open()
    expect(console.card("fusion")).to_be_visible()
    page.get_by_role("navigation", name="pipelines").get_by_role("button").last.focus()

    visited = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        if id := page.evaluate("document.activeElement.dataset.id"):
            visited.add(id)
    assert len(visited) == 10
    page.locator(".svelte-flow__node[data-id=fusion]").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="fusion", level=2)).to_have_count(0)


def test_the_colours_turn_and_stay_turned(console: Console) -> None:
    page = console.open()
    light = "getComputedStyle(document.documentElement).colorScheme"
    page.get_by_role("button", name="more").click()

    page.get_by_role("button", name="Light" if console.look.is_dark else "Dark").click()

    expected = "light" if console.look.is_dark else "dark"
    page.wait_for_function(f"() => {light} === '{expected}'")
    page.reload()
    page.wait_for_function(f"() => {light} === '{expected}'")


@rule(60)
def test_the_wall_is_the_overview_alone_with_what_fails_first(console: Console) -> None:
    page = console.open("wall")
    cards = page.get_by_role("article")
    expect(cards.first).to_contain_text("audit")
    expect(page.get_by_role("banner").get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("navigation")).to_have_count(0)

    with passing(console.server, "press-readings", {"press": "north", "temp": 71}):
        expect(cards.first).to_contain_text("orders")
        expect(page.get_by_text("1 failing")).to_be_visible()
        console.picture("failing")
