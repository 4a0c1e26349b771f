"""Scenarios of the console: what a browser does for many pipelines, and when there is something to see.

Not a ratio: what counts is the share of a core that the page's process takes, as the browser itself tells
it, while the pipelines make two thousand events a second together.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import CDPSession, Page

from bench.consolepage import VIEW, watched
from bench.measuring import Effort
from bench.table import Row
from tests.console.loaded import Loaded

EVENTS, FEWER = 2000, 1100
"""A second: what comes in and what goes out, of all pipelines together."""
SETTLED_MS, WATCHED_MS, BRIEF_MS = 5000, 15_000, 2000
NEAR, WALL = 55, (3840, 2160)
"""So many cards, and a screen that they all fit on."""
MOST_MAIN, MOST_RENDERER = 8.0, 20.0
"""Per cent of a core: of the page's own thread, and of its process."""
MOST_KB, MOST_WITH_EDITOR = 170, 340
"""Of what is loaded, compressed, without fonts."""
SOONEST_PAINT, SOONEST_CARD = 500, 1000
SLOWED = 4
SLOWED_PAINT, SLOWED_CARD = 1000, 2500
PAN_STEPS, MOST_PAN = 60, 16
"""Of panning: how many steps, and the milliseconds that one may take."""
FIRST_CARD = """
(() => {
  const look = () => document.querySelector("article.card")
    ? (window.firstCard = performance.now()) : requestAnimationFrame(look);
  look();
})()"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def consoleopens(effort: Effort) -> list[Row]:
    """Ten pipelines: what is loaded, and when there is something to see."""
    with watched(10, EVENTS) as (page, _):
        page.add_init_script(FIRST_CARD)
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        loaded = Loaded(page)
        paint, card = _seen(page)
        cards = loaded.kilobytes
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        slowed_paint, slowed_card = _seen(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        page.evaluate("location.hash = '#/edit/pipe-0000'")
        page.wait_for_selector(".cm-content")
        page.wait_for_load_state("networkidle")
        editor = loaded.kilobytes
    slowed = f"CPU slowed {SLOWED} times"
    return [
        _row("consoleopens", "first paint", paint, SOONEST_PAINT, "ms"),
        _row("consoleopens", "first card", card, SOONEST_CARD, "ms"),
        _row("consoleopens", f"first paint, {slowed}", slowed_paint, SLOWED_PAINT, "ms"),
        _row("consoleopens", f"first card, {slowed}", slowed_card, SLOWED_CARD, "ms"),
        _row("consoleopens", "loaded to the cards, without fonts", cards, MOST_KB, "kB"),
        _row("consoleopens", "with the editor", editor, MOST_WITH_EDITOR, "kB"),
    ]


def console100(effort: Effort) -> list[Row]:
    """A hundred pipelines, cards or tiles as they fit."""
    with watched(100 if effort.pairs > 1 else 10, EVENTS) as (page, _):
        return _share("console100", page, effort, "renderer")


def console1000(effort: Effort) -> list[Row]:
    """A thousand pipelines from afar; and a step of moving the view over them."""
    with watched(1000 if effort.pairs > 1 else 20, EVENTS) as (page, _):
        rows = _share("console1000", page, effort, "renderer")
        took = _panned(page, PAN_STEPS if effort.pairs > 1 else 5)
    return [*rows, _row("console1000", "a step of panning", took, MOST_PAN, "ms")]


def consolenear(effort: Effort) -> list[Row]:
    """As many cards as a large screen holds, with what draws them."""
    with watched(NEAR if effort.pairs > 1 else 10, FEWER, WALL) as (page, _):
        return _share("consolenear", page, effort, "renderer", "GPU")


def _seen(page: Page) -> tuple[float, float]:
    """Load the page anew; return when it painted and when there was a card, in ms."""
    page.reload()
    page.wait_for_function("() => window.firstCard")
    page.wait_for_load_state("networkidle")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return paint, page.evaluate("window.firstCard")


def _share(scenario: str, page: Page, effort: Effort, *processes: str) -> list[Row]:
    """Return what shares of a core the page's own thread and some of the browser's processes take."""
    watching = WATCHED_MS if effort.pairs > 1 else BRIEF_MS
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    whole = page.context.browser.new_browser_cdp_session()  # type: ignore[union-attr]
    page.wait_for_timeout(min(watching, SETTLED_MS))
    before = _figures(session, whole, processes)
    page.wait_for_timeout(watching)
    after = _figures(session, whole, processes)
    seconds = after["Timestamp"] - before["Timestamp"]
    main, drawing = (
        100 * (after[name] - before[name]) / seconds for name in ("TaskDuration", "processes")
    )
    elements = page.evaluate("document.querySelectorAll('*').length")
    cards = page.locator("article.card").count()
    heap = after["JSHeapUsedSize"] / 2**20
    about = f"{cards} cards, {elements} elements, heap {heap:.0f} MB"
    return [
        _row(scenario, f"main thread: {about}", main, MOST_MAIN, "%"),
        _row(scenario, f"{' and '.join(processes)}: {about}", drawing, MOST_RENDERER, "%"),
    ]


def _panned(page: Page, steps: int) -> float:
    """Return the milliseconds of the page's own thread that a step of moving the view takes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    view = page.locator(".svelte-flow")
    box = view.bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
    x, y = box["x"] + box["width"] - 10, box["y"] + box["height"] / 2  # where no tile is
    stood = page.locator(VIEW).get_attribute("style")
    page.mouse.move(x, y)
    page.mouse.down()
    before = _metrics(session)
    for step in range(1, steps + 1):
        page.mouse.move(x - 5 * step, y)
        page.evaluate(DRAWN)
    after = _metrics(session)
    page.mouse.up()
    if page.locator(VIEW).get_attribute("style") == stood:
        raise RuntimeError("the view did not move")
    return 1000 * (after["TaskDuration"] - before["TaskDuration"]) / steps


def _metrics(session: CDPSession) -> dict[str, float]:
    told = session.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in told}


def _figures(page: CDPSession, browser: Any, processes: tuple[str, ...]) -> dict[str, float]:
    told = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    # The page is the only one that does anything.
    taken = sum(each["cpuTime"] for each in told if each["type"] in processes)
    return _metrics(page) | {"processes": taken}


def _row(scenario: str, what: str, value: float, most: float, unit: str) -> Row:
    figure = f"{value:.1f} {unit}"
    return Row(scenario, what, "-", figure, f"at most {most:g} {unit}", value <= most, value)
