"""What a chain would do, as marbles over virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.console.browser import Console
from tests.console.dryruns import CONFIG, SIX, lane, tried
from tests.console.rules import rule


@pytest.fixture
def config() -> Any:
    """Give the chains that are tried."""
    return CONFIG


@rule(42)
def test_the_marbles_of_a_window_of_five_seconds_stand_in_one_box_at_five_seconds(
    console: Console,
) -> None:
    page = tried(console, "means", SIX)

    expect(lane(page, "buffer").locator("rect.batch")).to_have_count(1)
    box = lane(page, "buffer").locator("rect.batch").bounding_box()
    assert box is not None
    for n in range(6):
        marble = lane(page, "buffer").get_by_role("button", name=f"message {n}, at 5 s, buffer")
        there = marble.bounding_box()
        assert there is not None
        assert box["x"] <= there["x"]
        assert there["x"] + there["width"] <= box["x"] + box["width"]


@rule(43)
def test_a_marble_of_six_shows_its_message_and_six_origins_and_what_is_not_of_them_fades(
    console: Console,
) -> None:
    page = tried(console, "means", [*SIX, {"press": "cold", "temp": 3}])

    page.get_by_role("button", name="at 5 s, reducer, made of 6 messages: 0 1 2 3 4 5").click()

    chosen = page.get_by_role("complementary", name="what is chosen")
    expect(chosen).to_contain_text("72.5")
    expect(chosen.get_by_role("heading", name="made of 6 messages")).to_be_visible()
    for n, message in enumerate(SIX):
        expect(chosen.get_by_role("button", name=f"message {n} ")).to_contain_text(
            str(message["temp"])
        )
    assert faded(page.get_by_role("button", name="message 6, at 0 s, input"))
    assert not faded(page.get_by_role("button", name="message 5, at 0 s, input"))

    chosen.get_by_role("button", name="message 2 ").click()

    assert faded(page.get_by_role("button", name="message 5, at 5 s, buffer"))
    assert not faded(page.get_by_role("button", name="message 2, at 5 s, buffer"))


def faded(marble: Locator) -> bool:
    """Return whether a marble stands back."""
    return float(marble.evaluate("each => getComputedStyle(each).opacity")) < 0.5


@rule(44)
def test_the_next_moment_of_a_clock_at_zero_is_that_at_which_something_comes_out(
    console: Console,
) -> None:
    page = tried(console, "means", SIX)
    clock = page.get_by_role("slider", name="clock")
    mean = page.get_by_role("button", name="at 5 s, reducer, made of 6 messages: 0 1 2 3 4 5")
    clock.fill("0")
    expect(page.get_by_label("time", exact=True)).to_have_text("0 s")
    assert _is_still_to_come(mean)

    page.get_by_role("button", name="Next moment").click()

    expect(page.get_by_label("time", exact=True)).to_have_text("5 s")
    assert not _is_still_to_come(mean)

    page.get_by_role("button", name="previous moment").click()
    expect(page.get_by_label("time", exact=True)).to_have_text("0 s")
    page.get_by_role("heading", name="Dry run").click()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("time", exact=True)).to_have_text("5 s")


def _is_still_to_come(marble: Locator) -> bool:
    moment = marble.locator("xpath=..")
    return float(moment.evaluate("each => getComputedStyle(each).opacity")) < 0.5


@rule(45)
def test_the_reason_of_a_dropped_message_is_read_when_its_circle_has_the_focus(
    console: Console,
) -> None:
    page = tried(console, "alarms", SIX)
    reason = "'temp' is 71, and the condition is greater_than 72"
    page.get_by_role("button", name="message 0, at 0 s, input").focus()

    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="message 1, at 0 s, input")).to_be_focused()
    page.keyboard.press("ArrowDown")

    circle = page.get_by_role("button", name=f"message 1, dropped by filter: {reason}")
    expect(circle).to_be_focused()
    expect(page.get_by_role("complementary", name="what is chosen")).to_contain_text(reason)
    expect(page.get_by_role("row", name="message 1")).to_contain_text(f"filter {reason}")


def test_a_stage_that_fails_says_why_and_what_is_behind_it_is_not_reached(console: Console) -> None:
    page = tried(console, "failing", [{"temp": 5}, {"temp": -5}])

    expect(page.get_by_role("status").filter(has_text="fails")).to_have_text(
        "map fails, as it would in the pipeline:"
        " mapping 0 ('copy'): field 'order.id' is missing or null"
    )
    expect(lane(page, "map")).to_contain_text("fails")
    expect(lane(page, "buffer")).to_contain_text("not reached")
    expect(page.get_by_role("row", name="message 0")).to_contain_text("map failed")
    expect(page.get_by_role("row", name="message 1")).to_contain_text("filter 'temp' is -5")


def test_a_longer_time_shows_what_comes_later(console: Console) -> None:
    page = tried(console, "means", SIX)
    until = page.get_by_label("run until")

    until.fill("3 s")
    until.press("Enter")
    expect(page.get_by_role("row", name="message 0")).to_contain_text("buffer held (6 in all)")

    until.fill("1 min")
    until.press("Enter")
    expect(page.get_by_role("row", name="message 0")).to_contain_text("out at 5 s, with 5 others")


def test_every_digit_of_a_number_goes_through_the_chain(console: Console) -> None:
    page = console.open("dryrun/alarms")
    number = "1234567890123456789012345678901234567890"
    page.get_by_label("messages", exact=True).fill(f'{{"temp": 99, "serial": {number}}}')
    page.get_by_role("button", name="Run", exact=True).click()

    page.get_by_role("button", name="message 0, at 0 s, filter").click()

    expect(page.get_by_role("complementary", name="what is chosen")).to_contain_text(number)


def test_of_two_hundred_messages_and_many_moments_some_are_drawn_and_the_others_are_counted(
    console: Console,
) -> None:
    page = tried(console, "crowded", [{"n": n} for n in range(200)])

    assert page.locator("[data-stop]").count() <= 1000
    expect(lane(page, "splitter")).to_contain_text("200 on")
    expect(lane(page, "splitter")).to_contain_text("not drawn")
    expect(page.get_by_role("row")).to_have_count(201)
    more = lane(page, "input").get_by_role("button", name="+176 of this batch")
    more.click()
    chosen = page.get_by_role("complementary", name="what is chosen")
    expect(chosen.get_by_role("listitem")).to_have_count(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


class TestWhoMayOnlyRead:
    """An account of the role `read`."""

    @pytest.fixture
    def options(self, tmp_path: Path) -> tuple[str, ...]:
        """Give the settings of a server with one account."""
        users = {"rita": {"role": "read", "password": "correct horse"}}
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps({"auth": {"type": "basic", "users": users}}))
        return ("--server-config", str(settings))

    @rule(48)
    def test_is_told_that_a_dry_run_takes_another_role(self, console: Console) -> None:
        account = {"username": "rita", "password": "correct horse"}
        console.page.request.post(f"{console.origin}/api/auth/login", data=account)

        page = console.open("dryrun/means")

        expect(page.get_by_text("A dry run takes the role admin")).to_be_visible()
        expect(page.get_by_role("button", name="Run")).to_have_count(0)
