"""How pipelines failed."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.passing import shown_when_told
from tests.console.rules import rule


def failures(page: Page, id: str = "orders") -> Locator:
    """Return the rows of the failures of a pipeline."""
    return page.get_by_role("list", name=f"failures of {id}").get_by_role("listitem")


@rule(28)
def test_forty_equal_failures_are_one_row(console: Console) -> None:
    page = console.open("p/orders/failures")
    expect(page.get_by_text("No failures, as far back")).to_be_visible()

    for _ in range(40):
        console.server.post("press-readings", {"press": "north", "temp": 1})

    expect(failures(page)).to_have_count(1)
    expect(failures(page)).to_contain_text("40\N{MULTIPLICATION SIGN}")
    expect(failures(page)).to_contain_text("transform 0, map")
    expect(failures(page)).to_contain_text(re.compile(r"first \d+ s ago.*last \d+ s ago"))


@rule(29)
def test_the_dry_run_of_a_failure_opens_with_the_message_that_is_known(console: Console) -> None:
    page = console.open("p/orders/live")
    log = page.get_by_role("list", name="messages of orders")
    shown_when_told(console, log.get_by_text("63.5"), {"press": "north", "temp": 63.5})
    page.get_by_label("what is shown of orders").get_by_role("link", name="failures").click()

    failures(page).get_by_role("button", name="Dry run").click()

    expect(page).to_have_url(re.compile(r"#/dryrun/orders"))
    expect(page.get_by_role("row", name="message 0")).to_contain_text("63.5")
    expect(page.get_by_text("field 'order.id' is missing").first).to_be_visible()


def test_failures_of_all_pipelines_are_one_list(console: Console) -> None:
    console.server.post("press-readings", {"press": "north", "temp": 1})
    console.server.post("line-pressure", {"bar": "x"})
    page = console.open("failures")
    rows = page.get_by_role("list", name="failures, the latest first").get_by_role("listitem")
    expect(rows).to_have_count(2)

    page.get_by_role("searchbox", name="show failures that contain").fill("LINE")

    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("transform 0, map")
    page.get_by_role("button", name="input", exact=True).click()
    expect(page.get_by_text("No failure fits")).to_be_visible()
    page.get_by_role("button", name="all", exact=True).click()
    rows.get_by_role("link", name="line-pressure").click()
    expect(failures(page, "line-pressure")).to_have_count(1)


def test_that_nothing_has_failed_is_said(console: Console) -> None:
    page = console.open("failures")

    expect(page.get_by_text("Nothing has failed")).to_be_visible()
