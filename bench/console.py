"""Scenarios of the console: what a browser does for many pipelines, and when there is something to see.

Not a ratio: what counts is the share of a core that the page's process takes, as the browser itself tells
it, while the pipelines make two thousand events a second together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import servers
from bench.ingest import path
from bench.load import HOST
from bench.measuring import Effort
from bench.servers import Server
from bench.table import Row
from headrace.web.console import assets
from tests.services.programs import Missing

CHROMIUM = Path("/usr/bin/chromium")
TREE = 5
JSON = {"Content-Type": "application/json"}
EVENTS = 2000
"""A second: what comes in and what goes out, of all pipelines together."""
SETTLED_MS = 5000
WATCHED_MS = 15_000
BRIEF_MS = 2000
MOST_MAIN, MOST_RENDERER = 8.0, 20.0
"""Per cent of a core: of the page's own thread, and of its process."""
MOST_KB = 170
"""Of what is loaded until there are cards, compressed, without fonts."""
SOONEST_PAINT, SOONEST_CARD = 500, 1000
FIRST_CARD = """
(() => {
  const look = () => document.querySelector("article.card")
    ? (window.firstCard = performance.now()) : requestAnimationFrame(look);
  look();
})()"""


def console100(effort: Effort) -> list[Row]:
    """A hundred pipelines, cards or tiles as they fit."""
    return _watched("console100", 100 if effort.pairs > 1 else 10, effort)


def console1000(effort: Effort) -> list[Row]:
    """A thousand pipelines from afar."""
    return _watched("console1000", 1000 if effort.pairs > 1 else 20, effort)


def consoleopens(effort: Effort) -> list[Row]:
    """Ten pipelines: what is loaded, and when there is something to see."""
    with _page(10) as page:
        page.add_init_script(FIRST_CARD)
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        sizes: dict[str, float] = {}
        fonts: set[str] = set()
        session.on(
            "Network.responseReceived",
            lambda it: fonts.add(it["requestId"]) if it["type"] in ("Font", "Fetch") else None,
        )
        session.on(
            "Network.loadingFinished",
            lambda it: sizes.__setitem__(it["requestId"], it["encodedDataLength"]),
        )
        page.reload()
        page.wait_for_function("() => window.firstCard")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        card = page.evaluate("window.firstCard")
        loaded = sum(size for id, size in sizes.items() if id not in fonts) / 1024
    return [
        _row("consoleopens", "first paint", paint, SOONEST_PAINT, "ms"),
        _row("consoleopens", "first card", card, SOONEST_CARD, "ms"),
        _row("consoleopens", "loaded to the cards, without fonts", loaded, MOST_KB, "KB"),
    ]


def _watched(scenario: str, count: int, effort: Effort) -> list[Row]:
    watched = WATCHED_MS if effort.pairs > 1 else BRIEF_MS
    with _page(count) as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        whole = page.context.browser.new_browser_cdp_session()  # type: ignore[union-attr]
        page.wait_for_timeout(min(watched, SETTLED_MS))
        before = _figures(session, whole)
        page.wait_for_timeout(watched)
        after = _figures(session, whole)
        elements = page.evaluate("document.querySelectorAll('*').length")
    seconds = after["Timestamp"] - before["Timestamp"]
    main, renderer = (
        100 * (after[name] - before[name]) / seconds for name in ("TaskDuration", "renderer")
    )
    heap = after["JSHeapUsedSize"] / 2**20
    about = f"{count} pipelines, {elements} elements, heap {heap:.0f} MB"
    return [
        _row(scenario, f"main thread: {about}", main, MOST_MAIN, "%"),
        _row(scenario, f"renderer: {about}", renderer, MOST_RENDERER, "%"),
    ]


def _figures(page: Any, browser: Any) -> dict[str, float]:
    told = page.send("Performance.getMetrics")["metrics"]
    processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    # The page is the only one that does anything.
    renderers = sum(each["cpuTime"] for each in processes if each["type"] == "renderer")
    return {each["name"]: each["value"] for each in told} | {"renderer": renderers}


def _row(scenario: str, what: str, value: float, most: float, unit: str) -> Row:
    figure = f"{value:.1f} {unit}"
    return Row(scenario, what, "-", figure, f"at most {most:g} {unit}", value <= most, value)


@contextmanager
def _page(count: int) -> Iterator[Page]:
    """Open the console of a server with so many pipelines, in trees of five."""
    if not CHROMIUM.exists() or assets.page("") is None:
        raise Missing("chromium, or the built console")
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace([*_pipelines(count)], Path(folder)) as server,
        _traffic(server, count),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"http://{HOST}:{server.port}/")
        page.wait_for_selector(".svelte-flow__viewport")
        yield page
        browser.close()


@contextmanager
def _traffic(server: Server, count: int) -> Iterator[None]:
    """Post to the trees in turn: each post makes ten events."""
    ended = Event()

    def post() -> None:
        client = HTTPConnection(HOST, server.port)
        for number in cycle(range(0, count, TREE)):
            if ended.wait(2 * TREE / EVENTS):
                return
            client.request("POST", path(f"pipe-{number:04}"), b'{"n": 1}', JSON)
            client.getresponse().read()

    thread = Thread(target=post)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _pipelines(count: int) -> Iterator[dict[str, Any]]:
    """Yield trees of five: one takes posts, four read it."""
    for number in range(count):
        root = f"pipe-{number - number % TREE:04}"
        reads = {"type": "pipeline", "upstream": root}
        inputs = [reads if number % TREE else {"type": "http"}]
        yield {"id": f"pipe-{number:04}", "inputs": inputs, "outputs": []}
