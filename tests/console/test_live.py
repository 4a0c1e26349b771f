"""The log of a pipeline, as it runs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.passing import shown_when_told
from tests.console.rules import rule

DIGITS = "1234567890123456789012345678901234567890"
ORDER = {"press": "north", "temp": 71.25, "order": {"id": 7, "lines": [{"sku": "a"}]}}


def opened(console: Console, id: str = "press-readings") -> Page:
    """Return the page with the log of a pipeline, which is told of what passes."""
    page = console.open(f"p/{id}/live")
    expect(page.get_by_role("heading", name=id, level=2)).to_be_visible()
    shown_when_told(console, page.get_by_role("list", name="messages of").get_by_text("0.125"))
    quiet(page)
    return page


def quiet(page: Page) -> None:
    """Wait until the next batch is a row: of those that pass within 100 ms one is."""
    page.wait_for_function("from => Date.now() > from + 150", arg=page.evaluate("Date.now()"))


def row(page: Page, text: str, label: str = "in", *, exact: bool = False) -> Locator:
    """Return the row of what came in, or went out, with a text in it, or with a part that is this text."""
    rows = page.get_by_role("list", name="messages of").get_by_role("listitem")
    with_text = rows.filter(has=page.get_by_text(text, exact=exact))
    return with_text.filter(has=page.get_by_text(label, exact=True)).first


@rule(15)
def test_a_batch_that_passes_is_a_row(console: Console) -> None:
    page = opened(console)

    console.server.post("press-readings", [{"press": "north", "temp": 71.25}])

    expect(row(page, "71.25")).to_be_visible()
    expect(row(page, "71.25", "out")).to_be_visible()


@rule(16)
def test_a_row_that_is_opened_shows_all_its_messages_indented_and_pauses(console: Console) -> None:
    page = opened(console)
    console.server.post("press-readings", [ORDER, {"press": "south", "temp": 2}])

    row(page, "71.25").get_by_role("button").first.click()

    expect(page.get_by_role("group", name="message 1")).to_contain_text(
        re.compile(r'\{\n  "press".*: "north",\n  "temp"', re.DOTALL), use_inner_text=True
    )
    expect(page.get_by_role("group", name="message 2")).to_contain_text("south")
    expect(page.get_by_role("button", name="resume")).to_be_visible()


@rule(17, 18)
def test_a_paused_log_stays_and_counts_and_shows_the_newest_when_it_is_resumed(
    console: Console,
) -> None:
    page = opened(console)
    console.server.post("press-readings", {"temp": 1001})
    expect(row(page, "1001", "out")).to_be_visible()
    page.get_by_role("button", name="pause").click()
    quiet(page)

    console.server.post("press-readings", {"temp": 1002})

    expect(page.get_by_role("button", name=re.compile("resume.*2 new"))).to_be_visible()
    expect(page.get_by_text("1002")).to_have_count(0)
    page.get_by_role("button", name="resume").click()
    rows = page.get_by_role("list", name="messages of").get_by_role("listitem")
    expect(rows.first).to_contain_text("1002")


@rule(17)
def test_rates_go_on_while_the_log_is_paused(console: Console) -> None:
    page = opened(console)
    page.get_by_role("button", name="pause").click()

    console.server.post("press-readings", [{"temp": 1}] * 500)

    into = page.get_by_label("pipeline press-readings").locator("dd").first
    expect(into).not_to_have_text("0/s")


@rule(19)
def test_only_rows_with_the_text_show(console: Console) -> None:
    page = opened(console)
    console.server.post("press-readings", {"press": "north", "temp": 2})
    expect(row(page, "north", "out")).to_be_visible()
    quiet(page)
    page.get_by_role("searchbox", name="show messages that contain").fill("SOUTH")

    console.server.post("press-readings", {"press": "south", "temp": 3})

    expect(row(page, "south", "out")).to_be_visible()
    expect(page.get_by_text("north")).to_have_count(0)
    page.get_by_role("button", name="out", exact=True).click()
    expect(row(page, "south")).to_have_count(0)


@rule(20)
def test_a_number_of_forty_digits_keeps_them(console: Console) -> None:
    page = opened(console)
    body = f'{{"temp":5,"n":{DIGITS}}}'.encode()

    console.server.request("POST", "/api/pipelines/press-readings/messages", body)

    row(page, DIGITS).get_by_role("button").first.click()
    expect(page.get_by_role("group", name="message 1")).to_contain_text(DIGITS)


@rule(21)
def test_a_message_that_was_cut_shows_as_text_and_says_so(console: Console) -> None:
    page = opened(console)
    console.server.post("press-readings", {"temp": 4, "text": "x" * 3000})

    row(page, "xxx").get_by_role("button").first.click()

    message = page.get_by_role("group", name="message 1")
    expect(message).to_contain_text("xxx…")
    expect(message).to_contain_text("Cut by the server")


@rule(22)
def test_a_batch_that_is_wider_than_shown_says_how_many_are_not(console: Console) -> None:
    page = opened(console)
    console.server.post("press-readings", [{"temp": n} for n in range(130)])

    # A time of day may have these digits as well.
    row(page, "130", exact=True).get_by_role("button").first.click()
    page.get_by_role("button", name="Show 90 more").click()

    expect(page.get_by_role("group", name="message 100")).to_contain_text("99")
    expect(page.get_by_text("30 messages more in this batch are not shown")).to_be_visible()


@rule(23)
def test_the_path_of_a_field_is_copied_with_the_keyboard_alone(console: Console) -> None:
    page = opened(console)
    console.server.post("press-readings", ORDER)
    first = row(page, "71.25").get_by_role("button").first
    expect(first).to_be_visible()
    first.press("Enter")

    if console.look.is_narrow:
        page.get_by_role("combobox", name="copy path").select_option("order.id")
    else:
        first.press("Tab")
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

    expect(page.get_by_text("copied order.id")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "order.id"


def test_failures_are_rows_and_can_be_had_alone(console: Console) -> None:
    page = opened(console, "orders")
    console.server.post("press-readings", {"temp": 6})

    page.get_by_role("button", name="failures", exact=True).click()

    failed = page.get_by_role("list", name="messages of").get_by_role("listitem")
    expect(failed.first).to_contain_text("transform 0, map")
    expect(failed.first).to_contain_text("order.id")
    expect(failed.filter(has_text="temp")).to_have_count(0)


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", "\u202egnp.exe", "a\u0000\u001b[31m"]
)
def test_what_a_message_says_is_text(console: Console, text: str) -> None:
    page = opened(console)

    console.server.post("press-readings", {"temp": 7, text: text})

    row(page, '"temp":7').get_by_role("button").first.click()
    expect(page.get_by_role("group", name="message 1")).to_contain_text('"temp"')
    expect(page.locator("img[src=x]")).to_have_count(0)
