"""What passes, and what does not: rates, failures, and lines between cards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.rules import rule
from tests.console.traffic import passing
from tests.forked import serving
from tests.server import Server
from tests.services.server import free_port

READING = {"press": "north", "temp": 71.25}


def rate_of(console: Console, id: str, side: str = "in") -> float:
    """Return what a card says that passes a second."""
    found = re.search(rf"([\d.]+)/s {side}", console.card(id).inner_text().replace("\n", ""))
    return float(found[1]) if found else 0.0


def wait_for_rate(page: Page, id: str, least: float, most: float, side: str = "in") -> None:
    """Wait until a card says a rate between two."""
    page.wait_for_function(
        """([id, side, least, most]) => {
          const card = [...document.querySelectorAll("article.card")]
            .find((each) => each.ariaLabel.startsWith(id + ","));
          const found = card?.textContent.match(new RegExp("([\\\\d.]+)/s " + side));
          return found && found[1] >= least && found[1] <= most;
        }""",
        arg=[id, side, least, most],
    )


def wait_for_width(page: Page, line: Locator, least: float) -> None:
    """Wait until a line is thicker than some pixels."""
    page.wait_for_function(
        "([line, least]) => Number(line.getAttribute('stroke-width')) > least",
        arg=[line.element_handle(), least],
    )


@rule(6)
@pytest.mark.wide_only
def test_fifty_messages_a_second_are_fifty_within_a_tenth(console: Console) -> None:
    page = console.open()
    expect(console.card("press-readings")).to_be_visible()

    with passing(console.server, "press-readings", READING, each=5):
        wait_for_rate(page, "press-readings", 45, 55)
        wait_for_rate(page, "readings-copy", 45, 55)
        console.picture("passing")


@rule(7)
@pytest.mark.wide_only
def test_passes_that_no_event_is_made_of_count_as_well(console: Console) -> None:
    page = console.open("p/press-readings/live")  # of its batches one in 100 ms is told at most
    expect(page.get_by_role("heading", name="press-readings", level=2)).to_be_visible()

    with passing(console.server, "press-readings", READING, seconds=0.02):
        wait_for_rate(page, "press-readings", 45, 55)


@rule(8)
@pytest.mark.wide_only
def test_the_lines_of_what_hands_nothing_on_are_thin_and_grey(console: Console) -> None:
    page = console.open()
    line = page.get_by_role("img", name="press-readings to press-means").locator("path.line")
    silent = page.get_by_role("img", name="press-alarms to fusion").locator("path.line")
    expect(line).to_have_attribute("stroke-width", "1.2")
    idle = line.evaluate("(it) => getComputedStyle(it).stroke")

    with passing(console.server, "press-readings", READING, each=20):
        wait_for_width(page, line, 4)  # the rate grows with what is posted
        assert line.evaluate("(it) => getComputedStyle(it).stroke") != idle
        wait_for_rate(page, "press-alarms", 150, 250)  # its filter drops them all
        expect(silent).to_have_attribute("stroke-width", "1.2")
        assert silent.evaluate("(it) => getComputedStyle(it).stroke") == idle

    expect(line).to_have_attribute("stroke-width", "1.2")
    assert line.evaluate("(it) => getComputedStyle(it).stroke") == idle


@rule(10)
def test_a_card_that_fails_still_fails_after_a_reload_with_the_same_count(
    console: Console,
) -> None:
    page = console.open()
    expect(console.card("orders")).to_be_visible()
    for _ in range(7):
        console.server.post("press-readings", [READING])

    expect(console.card("orders")).to_contain_text("7\N{MULTIPLICATION SIGN}")
    expect(console.card("orders").get_by_role("img", name="failing")).to_be_visible()
    if not console.look.is_narrow:
        expect(console.card("orders")).to_contain_text("order.id")
    expect(page.get_by_text("1 failing")).to_be_visible()
    page.reload()

    expect(console.card("orders")).to_contain_text("7\N{MULTIPLICATION SIGN}")
    expect(console.card("orders").get_by_role("img", name="failing")).to_be_visible()


class TestNoBroker:
    @pytest.fixture
    def config(self) -> Any:
        gone = {"type": "nats", "connection": "gone", "subject": "orders"}
        return [{"id": "from-broker", "inputs": [gone], "outputs": []}]

    @pytest.fixture
    def server(self, tmp_path: Path, config: Any) -> Iterator[Server]:
        url = f"nats://127.0.0.1:{free_port()}"
        (tmp_path / "config.connections.json").write_text(
            json.dumps({"gone": {"type": "nats", "urls": url}})
        )
        with serving(tmp_path, config) as server:
            yield server

    @rule(9)
    def test_an_input_that_cannot_connect_is_told_with_why_and_when_it_is_tried_again(
        self, console: Console
    ) -> None:
        page = console.open()

        card = console.card("from-broker")
        expect(card.get_by_role("img", name="degraded")).to_be_visible()
        expect(card).to_contain_text(
            re.compile(r"nats: .*127\.0\.0\.1.*; tried again (now|in \d+ s)")
        )
        expect(page.get_by_text("1 degraded")).to_be_visible()


def test_a_new_failure_is_said_once_and_politely(console: Console) -> None:
    page = console.open()
    expect(console.card("orders")).to_be_visible()
    said = page.locator("[aria-live=polite]")
    expect(said).to_be_empty()

    console.server.post("press-readings", [READING])

    expect(said).to_contain_text("orders is failing: ")
    page.evaluate(
        """() => {
          window.changes = 0;
          new MutationObserver(() => (window.changes += 1)).observe(
            document.querySelector("[aria-live=polite]"),
            { childList: true, characterData: true, subtree: true });
        }"""
    )
    console.server.post("press-readings", [READING])
    expect(console.card("orders")).to_contain_text("2\N{MULTIPLICATION SIGN}")
    assert page.evaluate("window.changes") == 0


def test_what_is_not_well_stands_first_in_the_list(console: Console) -> None:
    page = console.open()
    names = page.get_by_role("navigation", name="pipelines").get_by_role("listitem")
    expect(names.first).to_contain_text("audit")

    console.server.post("press-readings", [READING])

    expect(names.first).to_contain_text("orders")
