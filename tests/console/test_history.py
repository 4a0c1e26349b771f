"""What a pipeline has counted, as a plot."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, Route, expect

from tests.console.browser import Console
from tests.console.rules import rule

BUCKET = re.compile(r"\d\d:\d\d:\d\d")


def plotted(console: Console, id: str) -> tuple[Page, Locator]:
    """Return the page with the history of a pipeline, and its plot."""
    page = console.open(f"p/{id}/history")
    plot = page.get_by_role("slider", name=f"messages in and out of {id}")
    expect(plot.locator("canvas")).to_be_visible()
    return page, plot


def moment(page: Page) -> Locator:
    """Return where the figures of a moment are told."""
    return page.get_by_label("at this moment")


def span(page: Page) -> Locator:
    """Return where it is told what is in sight."""
    return page.get_by_text(re.compile(r"^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$"))


@rule(26)
def test_a_new_bucket_comes_and_the_zoom_stays(console: Console) -> None:
    page, plot = plotted(console, "heartbeat")
    box = plot.bounding_box()
    assert box is not None
    whole = span(page).inner_text()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 90, steps=4)
    page.mouse.up()
    page.mouse.move(0, 0)
    expect(span(page)).not_to_have_text(whole)
    closer = span(page).inner_text()
    before = moment(page).locator("dd").first.inner_text()

    expect(moment(page).locator("dd").first).not_to_have_text(before)

    expect(span(page)).to_have_text(closer)
    page.get_by_role("button", name="all", exact=True).click()
    expect(span(page)).not_to_have_text(closer)


class Until:
    """Lets a page have answers up to the first whose last bucket has counted so many."""

    def __init__(self, inbound: int) -> None:
        self._inbound, self._is_over = inbound, False

    def __call__(self, route: Route) -> None:
        if not self._is_over:
            answer = route.fetch()
            last = answer.json()["buckets"][-1]
            self._is_over = last["inbound"] == self._inbound and last["errors"] == 1
            route.fulfill(response=answer)


@rule(27)
def test_a_moment_that_is_pointed_at_shows_its_figures(console: Console) -> None:
    page, plot = plotted(console, "orders")
    figures = moment(page)
    page.route("**/api/pipelines/orders/history*", Until(20))  # then no newer bucket comes
    console.server.post("press-readings", [{"press": "north", "temp": 20}] * 20)
    expect(figures).to_contain_text(re.compile(r"now.*4.0/s\s*20", re.DOTALL))
    box = plot.locator(".u-over").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 100)

    expect(figures).to_contain_text(re.compile(r"at\s*\d\d:\d\d:\d\d"))
    expect(figures).to_contain_text(re.compile(r"in\s*4.0/s\s*20"))
    expect(figures).to_contain_text(re.compile(r"out\s*0/s\s*0"))
    expect(figures).to_contain_text(re.compile(r"failures\s*1"))


@rule(27)
def test_a_moment_is_pointed_at_with_the_keyboard(console: Console) -> None:
    page, plot = plotted(console, "heartbeat")
    plot.focus()

    plot.press("Home")

    expect(moment(page)).to_contain_text("at")
    expect(plot).to_have_attribute("aria-valuenow", "0")
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"in .*/s, out .*/s, 0 failures"))


def test_a_day_by_the_minute_is_there_as_well(console: Console) -> None:
    page, _ = plotted(console, "heartbeat")

    page.get_by_role("button", name="24 h").click()

    expect(moment(page).locator("dd").first).to_have_text(re.compile(r"^\d\d:\d\d:00$"))
