"""Many pipelines: shelves, tiles from afar, cards near by."""

from __future__ import annotations

from collections.abc import Callable
from math import dist
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Console
from tests.console.plane import Box, box_of, boxes_of, overlapping
from tests.console.plant import HTTP, reads
from tests.console.rules import rule

pytestmark = pytest.mark.wide_only
FAR = 0.42


Point = tuple[float, float]


class TestUnconnected:
    @pytest.fixture
    def config(self) -> Any:
        return [{"id": f"alone-{n:03}", "inputs": [HTTP], "outputs": []} for n in range(100)]

    @rule(3)
    def test_a_hundred_unconnected_pipelines_fill_shelves_and_not_one_column(
        self, console: Console
    ) -> None:
        page = console.open()
        expect(page.locator(".svelte-flow__viewport")).to_be_attached()
        zoom(page, lambda now: now > FAR + 0.05)

        cards = page.locator("article.card")
        expect(cards.nth(8)).to_be_attached()
        boxes = boxes_of(cards)
        assert overlapping(boxes) == []
        across = {round(box[0]) for box in boxes.values()}
        down = {round(box[1]) for box in boxes.values()}
        assert len(across) > 2
        assert len(down) > 2


class TestThousand:
    @pytest.fixture
    def config(self) -> Any:
        """Two hundred graphs of five."""
        found: list[Any] = []
        for n in range(200):
            a, b, c, d, e = (f"pipe-{n * 5 + at:04}" for at in range(5))
            found += [
                {"id": a, "inputs": [HTTP], "outputs": []},
                *(
                    {"id": id, "inputs": reads(*upstreams), "outputs": []}
                    for id, *upstreams in ((b, a), (c, b), (d, b), (e, c, d))
                ),
            ]
        return found

    @rule(4)
    @rule(5)
    def test_a_thousand_pipelines_are_tiles_from_afar_and_cards_in_the_same_places_near_by(
        self, console: Console
    ) -> None:
        page = console.open()
        expect(page.get_by_text("1000 fine")).to_be_visible()
        page.wait_for_function(
            "() => document.querySelector('.svelte-flow__viewport')?.style.transform.includes('scale(0.')"
        )

        assert view_of(page)[2] < FAR
        assert page.locator("article.card").count() == 0
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        console.picture("far")

        zoom(page, lambda now: now > FAR + 0.05)
        cards = page.get_by_role("article")
        expect(cards.first).to_be_attached()
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        console.picture("near")
        middle = middle_of(box_of(page.locator(".svelte-flow")))
        nodes = page.locator(".svelte-flow__node")
        middles = {at: middle_of(box) for at, box in boxes_of(nodes).items()}
        at = min(middles, key=lambda it: dist(middles[it], middle))
        id, where = nodes.nth(int(at)).get_attribute("data-id"), in_graph(page, middles[at])

        zoom(page, lambda now: now < FAR - 0.05)
        expect(cards).to_have_count(0)
        page.mouse.click(*on_page(page, where))

        expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(
            id or ""
        )


def view_of(page: Page) -> tuple[float, float, float]:
    """Return where the origin of the graph is on the page, and how near the view is."""
    left, top, _, _ = box_of(page.locator(".svelte-flow"))
    x, y, near = page.locator(".svelte-flow__viewport").evaluate(
        "(it) => { const m = new DOMMatrix(getComputedStyle(it).transform); return [m.e, m.f, m.a]; }"
    )
    return left + x, top + y, near


def in_graph(page: Page, at: Point) -> Point:
    """Return where in the graph a point of the page is."""
    x, y, near = view_of(page)
    return (at[0] - x) / near, (at[1] - y) / near


def on_page(page: Page, at: Point) -> Point:
    """Return where on the page a point of the graph is."""
    x, y, near = view_of(page)
    return at[0] * near + x, at[1] * near + y


def middle_of(box: Box) -> Point:
    """Return where the middle of an element is."""
    left, top, right, bottom = box
    return (left + right) / 2, (top + bottom) / 2


def zoom(page: Page, is_enough: Callable[[float], bool]) -> None:
    """Turn the wheel over the middle until the view is as near, or as far, as is wanted."""
    page.mouse.move(*middle_of(box_of(page.locator(".svelte-flow"))))
    way = 1 if is_enough(0.0) else -1
    for _ in range(80):
        if is_enough(view_of(page)[2]):
            return
        page.mouse.wheel(0, way * 60)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    raise AssertionError(f"the view is at {view_of(page)[2]}")
