"""Dead letters: what could not be done, looked at, replayed, edited and deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.people import cookie_of, guarded
from tests.console.rules import rule
from tests.server import Server
from tests.web.auth.people import ADMIN, JSON, READER

ID = "line-pressure"
DIGITS = "1234567890123456789012345678901234567890"


@pytest.fixture
def config() -> Any:
    """Have a pipeline that keeps what it cannot do, and one that does not."""
    cast = {"type": "cast", "from": "bar", "to": "float"}
    return [
        {
            "id": ID,
            "dead_letters": True,
            "inputs": [{"type": "http"}],
            "transforms": [{"type": "map", "mappings": [cast]}],
            "outputs": [{"type": "file", "connection": "archive", "path": "pressure"}],
        },
        {"id": "other", "inputs": [{"type": "http"}], "outputs": []},
    ]


def fail(server: Server, count: int = 1, *, bar: str = "wet") -> None:
    """Have so many messages fail, each on its own."""
    for n in range(count):
        server.post(ID, {"bar": bar, "n": n})


def signatures(page: Page) -> Locator:
    """Return the rows of what failed alike."""
    return page.get_by_role("list", name="dead letters, the latest first").get_by_role("listitem")


def letters(page: Page) -> Locator:
    """Return the rows of the letters that failed alike."""
    return page.get_by_role("list", name=f"dead letters of {ID}").get_by_role("listitem")


def those_of(console: Console, count: int) -> Page:
    """Show the letters that have failed, so many."""
    page = console.open(f"letters/{ID}")
    expect(signatures(page)).to_contain_text(f"{count}\N{MULTIPLICATION SIGN}")
    signatures(page).get_by_role("link", name="open the dead letters").click()
    expect(letters(page)).to_have_count(count)
    return page


def opened(page: Page, at: int = 0) -> Locator:
    """Open a letter."""
    letters(page).nth(at).get_by_role("button").first.click()
    return letters(page).nth(at)


def in_dialog(page: Page, name: str) -> None:
    """Say yes to what is asked."""
    page.get_by_role("dialog").get_by_role("button", name=name).click()


def test_that_there_are_none_is_said_with_what_makes_some(console: Console) -> None:
    page = console.open("failures")
    page.get_by_role("link", name="dead letters").click()

    expect(page.get_by_text("No dead letters: all could be read")).to_be_visible()
    expect(page.get_by_text("dead_letters: true")).to_be_visible()
    page.get_by_role("listitem").get_by_role("link", name=ID).click()
    expect(page.get_by_role("heading", name=ID, level=2)).to_be_visible()


@rule(65)
def test_what_is_put_down_is_a_row_without_a_reload(console: Console) -> None:
    page = console.open("letters")
    expect(page.get_by_text("No dead letters: all could be read")).to_be_visible()

    fail(console.server, 3)

    expect(signatures(page)).to_have_count(1)
    expect(signatures(page)).to_contain_text("transform 0, map")
    expect(signatures(page)).to_contain_text("invalid")
    expect(
        page.get_by_label("what failed").get_by_role("link", name="dead letters 1")
    ).to_be_visible()


@rule(66)
def test_the_panel_of_a_pipeline_leads_to_its_dead_letters(console: Console) -> None:
    fail(console.server, 3)
    page = console.open(f"p/{ID}/live")

    page.get_by_role("link", name="3 dead letters wait").click()

    expect(signatures(page)).to_have_count(1)
    assert page.url.endswith(f"#/letters/{ID}")
    page.get_by_role("searchbox", name="show dead letters that contain").fill("another")
    expect(page.get_by_text("No dead letter fits")).to_be_visible()


@rule(67)
def test_a_letter_that_is_opened_tells_why_and_shows_its_message(console: Console) -> None:
    console.server.request(
        "POST", f"/api/pipelines/{ID}/messages", f'{{"bar":"wet","n":{DIGITS}}}'.encode()
    )
    page = those_of(console, 1)

    letter = opened(page)

    expect(letter).to_contain_text("transform 0, map")
    expect(letter.get_by_role("group", name="message 1")).to_contain_text(f'"n": {DIGITS}')
    expect(page.get_by_label("what failed", exact=True)).to_contain_text("1 dead letter")


@rule(68)
def test_a_letter_is_edited_and_replayed_and_is_gone(console: Console) -> None:
    fail(console.server, 2)
    page = those_of(console, 2)
    letter = opened(page)
    letter.get_by_role("button", name="Edit").click()
    text = letter.get_by_role("textbox", name="messages of dead letter")
    expect(text).to_contain_text('"wet"')

    text.fill('{"bar": ')
    expect(letter.get_by_role("status")).to_contain_text("Line 1")
    expect(letter.get_by_role("button", name="Replay as edited")).to_be_disabled()
    text.fill('{"bar": "1.5"}')
    expect(letter.get_by_role("status")).to_contain_text("1 message.")
    letter.get_by_role("button", name="Replay as edited").click()

    expect(page.get_by_label("replay", exact=True)).to_contain_text("It has gone through")
    expect(letters(page)).to_have_count(1)
    expect(page.get_by_text("The config of the pipeline has changed")).to_have_count(0)
    page.get_by_role("button", name="dismiss").click()
    expect(page.get_by_label("replay", exact=True)).to_have_count(0)


def test_a_dry_run_shows_what_a_replay_would_come_to_and_does_nothing(console: Console) -> None:
    console.server.request(
        "POST", f"/api/pipelines/{ID}/messages", f'{{"bar":"wet","n":{DIGITS}}}'.encode()
    )
    page = those_of(console, 1)
    letter = opened(page)
    letter.get_by_role("button", name="Dry run").click()
    outcome = letter.get_by_role("region", name="dry run")
    expect(outcome).to_contain_text("Some of it would fail again")
    expect(outcome).to_contain_text("Message 1 would go no further than transform 0, map")

    letter.get_by_role("button", name="Edit").click()
    expect(outcome).to_have_count(0)
    letter.get_by_role("textbox", name="messages of dead letter").fill(
        f'{{"bar": "1.5", "n": {DIGITS}}}'
    )
    letter.get_by_role("button", name="Dry run").click()

    expect(outcome).to_contain_text("1 message would go into transform 0, map.")
    expect(outcome.get_by_role("group", name="outcome 1")).to_contain_text('"bar": 1.5')
    expect(outcome.get_by_role("group", name="outcome 1")).to_contain_text(f'"n": {DIGITS}')
    expect(page.get_by_label("replay", exact=True)).to_have_count(0)
    answer = console.server.request("GET", f"/api/pipelines/{ID}/dead-letters")
    assert [each["tries"] for each in json.loads(answer.body)["entries"]] == [1]


@rule(69)
def test_all_are_replayed_and_those_that_fail_again_stay(console: Console) -> None:
    fail(console.server, 2)
    page = those_of(console, 2)

    page.get_by_role("button", name="Replay all").click()
    in_dialog(page, "Replay")

    expect(page.get_by_label("replay", exact=True)).to_contain_text(
        "0 of 2 have gone through, 2 have failed again and stay."
    )
    expect(letters(page).first).to_contain_text("2 tries")


@rule(70)
def test_letters_are_deleted_one_and_all(console: Console) -> None:
    fail(console.server, 3)
    page = those_of(console, 3)
    letter = opened(page)
    letter.get_by_role("button", name="Delete").click()
    in_dialog(page, "Delete")
    expect(letters(page)).to_have_count(2)

    page.get_by_role("button", name="Delete all").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete all 2 dead letters?")
    in_dialog(page, "Delete")

    expect(page.get_by_text("None are left")).to_be_visible()
    page.get_by_role("link", name="Dead letters", exact=True).click()
    expect(page.get_by_text("No dead letters: all could be read")).to_be_visible()


def test_letters_are_turned_over_a_page_at_a_time(console: Console) -> None:
    fail(console.server, 60)
    page = console.open("letters")
    signatures(page).get_by_role("link", name="open the dead letters").click()
    expect(letters(page)).to_have_count(50)

    page.get_by_role("button", name="Next").click()

    expect(letters(page)).to_have_count(10)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(letters(page)).to_have_count(50)


def test_what_is_looked_at_does_not_move_when_more_come(console: Console) -> None:
    fail(console.server, 2)
    page = those_of(console, 2)
    letter = opened(page)
    expect(letter.get_by_role("group", name="message 1")).to_be_visible()

    fail(console.server, 1)

    more = page.get_by_role("button", name="More have come")
    expect(more).to_be_visible()
    expect(letters(page)).to_have_count(2)
    more.click()
    expect(letters(page)).to_have_count(3)
    expect(letters(page).nth(1).get_by_role("group", name="message 1")).to_be_visible()


def test_letters_of_a_pipeline_that_is_gone_stay_and_can_be_deleted(console: Console) -> None:
    fail(console.server)
    page = those_of(console, 1)

    assert console.server.request("DELETE", f"/api/pipelines/{ID}").status == 204

    expect(page.get_by_text("There is no pipeline of this name any more")).to_be_visible()
    expect(page.get_by_role("button", name="Replay all")).to_be_disabled()
    page.get_by_role("button", name="Delete all").click()
    in_dialog(page, "Delete")
    expect(page.get_by_text("None are left")).to_be_visible()


class TestReader:
    """Of somebody who may look alone."""

    @pytest.fixture
    def options(self, tmp_path: Path) -> tuple[str, ...]:
        return guarded(tmp_path)

    @rule(71)
    def test_sees_why_and_not_what_is_in_them(self, console: Console) -> None:
        by_admin = {**cookie_of(console.server, ADMIN), **JSON}
        path = f"/api/pipelines/{ID}/messages"
        assert console.server.request("POST", path, b'{"bar": "wet"}', by_admin).status == 202
        name, _, value = cookie_of(console.server, READER)["Cookie"].partition("=")
        console.context.add_cookies([{"name": name, "value": value, "url": console.origin}])
        page = those_of(console, 1)

        letter = opened(page)

        expect(letter).to_contain_text("failed first")
        expect(
            page.get_by_text("What is in them is shown to who may change things")
        ).to_be_visible()
        buttons = page.get_by_role("main").get_by_role("button")
        expect(buttons).to_have_count(1)  # the row itself
        expect(page.get_by_role("group", name="message 1")).to_have_count(0)
