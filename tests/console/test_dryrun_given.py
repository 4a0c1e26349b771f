"""What goes into a dry run: written by hand, passing, sampled or tried before."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Console
from tests.console.dryruns import CONFIG, lane, tried
from tests.console.passing import shown_when_told
from tests.console.traffic import passing


@pytest.fixture
def config() -> Any:
    """Give the chains that are tried."""
    return CONFIG


def test_what_passes_next_is_tried_if_nothing_is_given(console: Console) -> None:
    page = console.open("dryrun/alarms")
    expect(page.get_by_text("waiting for the next batch that passes")).to_be_visible()

    marble = page.get_by_role("button", name="message 1, at 0 s, filter")
    shown_when_told(console, marble, {"press": "north", "temp": 71}, {"temp": 99})
    expect(page.get_by_role("row", name="message 0")).to_contain_text("71")


def test_what_is_no_message_is_told_with_its_line_and_is_not_tried(console: Console) -> None:
    page = console.open("dryrun/means")

    page.get_by_label("messages", exact=True).fill('{"temp": 80}\n{temp: 81}')

    expect(page.get_by_text("Line 2: '{temp: 81}' is no JSON.")).to_be_visible()
    page.get_by_role("button", name="A later batch").click()
    page.get_by_label("messages", exact=True).last.fill("1")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()


def test_what_was_tried_before_is_tried_again(console: Console) -> None:
    page = tried(console, "alarms", [{"temp": 1}])
    _open_what_is_given(page)
    page.get_by_label("messages", exact=True).fill('{"temp": 80}')
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("row", name="message 0")).to_contain_text("80")

    _open_what_is_given(page)
    page.get_by_label("messages tried before").select_option('1 message, {"temp":1}')

    expect(page.get_by_role("row", name="message 0")).to_contain_text("'temp' is 1")


def _open_what_is_given(page: Page) -> None:
    if not page.get_by_label("messages", exact=True).is_visible():
        page.get_by_text("1 message given").click()


def test_an_input_is_sampled_until_there_are_twenty_messages(console: Console) -> None:
    page = console.open("dryrun/alarms")
    with page.expect_request("**/api/inputs/sample"):
        page.get_by_role("button", name="Sample the input").click()

    with (  # nobody is told when the sample has begun to listen
        passing(console.server, "press-readings", {"press": "p", "temp": 90}, each=20),
        page.expect_response("**/api/inputs/sample") as answered,
    ):
        pass

    assert len(answered.value.json()["messages"]) == 20
    expect(page.get_by_text("20 messages given")).to_be_visible()
    expect(page.get_by_role("row", name="message 19")).to_contain_text("out")


def test_what_would_do_something_outside_waits_until_it_is_told_to(console: Console) -> None:
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.post_data or ""))
    page = console.open("dryrun/posting")
    expect(page.get_by_text("This chain acts outside of the dry run")).to_be_visible()

    given = page.get_by_text("1 message given")
    shown_when_told(console, given, {"press": "north", "temp": 71})
    expect(page.get_by_role("row")).to_have_count(0)

    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.get_by_role("status").filter(has_text="http fails")).to_be_visible()
    console.open("p/posting")
    expect(page.get_by_role("heading", name="posting", level=2)).to_be_visible()
    console.open("dryrun/posting")
    expect(page.get_by_text("1 message given")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="http fails")).to_be_visible()
    assert len([each for each in asked if '"north"' in each]) == 2


def test_batches_come_at_their_times(console: Console) -> None:
    page = console.open("dryrun/means")
    page.get_by_label("messages", exact=True).fill('{"temp": 80}\n{"temp": 90}')
    page.get_by_role("button", name="A later batch").click()
    page.get_by_label("messages", exact=True).last.fill('{"temp": 70}')
    later = page.get_by_label("time of the batch").last
    later.fill("7 s")
    later.press("Enter")

    page.get_by_role("button", name="Run", exact=True).click()

    expect(lane(page, "input").locator("rect.batch")).to_have_count(2)
    expect(page.get_by_role("button", name="message 2, at 7 s, input")).to_be_visible()
    expect(page.get_by_role("row", name="message 0")).to_contain_text("out at 5 s, with 1 other")
    expect(page.get_by_role("row", name="message 2")).to_contain_text("out at 12 s")


def test_a_bucket_begins_with_what_it_holds_now_if_that_is_wanted(console: Console) -> None:
    page = console.open("dryrun/recalling")
    came = page.get_by_role("row", name="message 0").filter(has_text="out at 0 s")
    shown_when_told(console, came, {"press": "north", "temp": 80})

    page.get_by_text("1 message given").click()
    page.get_by_label("begin with what the bucket holds now").uncheck()
    page.get_by_role("button", name="Run again").click()

    expect(page.get_by_role("row", name="message 0")).to_contain_text("nothing is remembered")
