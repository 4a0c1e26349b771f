"""The one stream of a page: when it is open, when it breaks, and what is told of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.console.barriers import hindering
from tests.console.browser import Console
from tests.console.plant import CONNECTIONS
from tests.console.rules import rule
from tests.console.traffic import passing
from tests.forked import serving
from tests.server import Server
from tests.services.server import free_port

# The browser of the tests shows all of its tabs; one is hidden as others are, for what asks.
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  Object.defineProperty(document, "visibilityState",
    { value: hidden ? "hidden" : "visible", configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# The seconds that a line of a minute leaves out, where it leaves out most.
GAP = r"""(line) => {
  const second = line.ownerSVGElement.viewBox.baseVal.width / 59;
  const points = [...line.getAttribute("d").matchAll(/([ML])([\d.]+)/g)];
  const gaps = points.slice(1).map(([, begins, x], at) => begins === "M" ? x - points[at][2] : 0);
  return Math.max(0, ...gaps) / second - 1;
}"""
# Each second between two moments, as a page tells the time.
SECONDS = """([from, to]) => {
  const told = [];
  for (let at = from; at < to + 1000; at += 1000)
    told.push(new Date(at).toLocaleTimeString(undefined, { hour12: false }));
  return told;
}"""
# How a server ends is told by the browser, each time something is asked of it.
GONE = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED|ERR_CONNECTION_CLOSED"  # noqa: E501


@rule(54)
def test_a_hidden_tab_has_no_stream_and_one_that_is_shown_again_has(console: Console) -> None:
    with console.page.expect_request("**/events?*"):
        page = console.open()
    expect(console.card("fusion")).to_be_visible()

    with page.expect_event("requestfailed", lambda it: "/events?" in it.url):
        page.evaluate(HIDE, True)

    with page.expect_request("**/events?*"):
        page.evaluate(HIDE, False)
    console.server.post("press-readings", [{"press": "north", "temp": 70}])
    expect(console.card("orders")).to_contain_text("1\N{MULTIPLICATION SIGN}")


@rule(53)
def test_a_seventh_tab_works_when_six_are_open(console: Console) -> None:
    pages = [console.open()]
    for _ in range(5):
        expect(pages[-1].get_by_text("fine")).to_be_visible()
        pages[-1].evaluate(HIDE, True)
        pages.append(console.tab())
        pages[-1].goto(f"{console.origin}/#/")
    expect(pages[-1].get_by_text("fine")).to_be_visible()
    pages[-1].evaluate(HIDE, True)

    console.page = console.tab()
    console.open("p/press-readings/live")

    with passing(console.server, "press-readings", {"press": "seventh"}):
        row = console.page.get_by_role("listitem").filter(has_text="seventh").first
        expect(row).to_be_visible()


@rule(51)
@rule(52)
def test_a_server_that_is_gone_is_told_and_one_that_comes_back_goes_on(
    tmp_path: Path, config: Any, opened: Callable[[Server], Console]
) -> None:
    (tmp_path / "config.connections.json").write_text(json.dumps(CONNECTIONS))
    listen = ("--data-dir", "data", "--listen", f"127.0.0.1:{free_port()}")
    with serving(tmp_path, config, *listen) as server:
        console = opened(server)
        console.allow(GONE)
        page = console.open()
        expect(console.card("orders")).to_be_visible()
        page.evaluate("window.stayed = true")
        figure = page.locator("main .num").first
        live = colour_of(figure)
        stopped = page.evaluate("Date.now()")

    bar = page.get_by_text("The server does not answer since")
    expect(bar).to_be_visible()
    since = bar.locator("b").inner_text()
    assert since in page.evaluate(SECONDS, [stopped, page.evaluate("Date.now()")])
    assert colour_of(figure) != live
    console.picture("gone")
    assert hindering(page, is_narrow=console.look.is_narrow) == []

    with serving(tmp_path, config, *listen) as server:
        console.server = server
        expect(bar).to_have_count(0)
        server.post("press-readings", [{"press": "north", "temp": 70}])
        expect(console.card("orders")).to_contain_text("1\N{MULTIPLICATION SIGN}")
        assert page.evaluate("window.stayed")
        assert colour_of(figure) == live


def colour_of(figure: Locator) -> str:
    """Return the colour that a figure is written in."""
    found: str = figure.evaluate("(it) => getComputedStyle(it).color")
    return found


@pytest.mark.wide_only
@rule(52)
def test_seconds_that_nobody_was_told_of_are_a_gap(console: Console) -> None:
    page = console.open()
    with passing(console.server, "press-readings", {"press": "north"}):
        line = console.card("press-readings").locator("path.out")
        page.wait_for_function(
            "(it) => (it.getAttribute('d').match(/L/g) ?? []).length > 2",
            arg=line.element_handle(),
        )
        # What the server has counted meanwhile is asked for, unless it cannot be told.
        page.route("**/api/history*", lambda route: route.fulfill(status=503, json={"error": ""}))
        console.allow("503")
        page.evaluate(HIDE, True)
        # By the clock of the page: a busy machine posts what is overdue faster, and may leave out
        # a second of its own, which is a gap as well.
        page.wait_for_function(
            "(from) => Date.now() - from > 5000", arg=page.evaluate("Date.now()")
        )
        page.evaluate(HIDE, False)

        page.wait_for_function(f"(it) => ({GAP})(it) >= 3", arg=line.element_handle())
