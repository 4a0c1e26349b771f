"""A draft on its way to what runs: what it changes and costs shows first, and nobody's work is lost."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.console.barriers import hindering
from tests.console.browser import Console
from tests.console.plant import PIPELINES
from tests.console.rules import rule
from tests.console.writing import edited, exchange, problems, settled, text_of, write
from tests.server import Server

JSON = {"Content-Type": "application/json"}
MEANS = next(each for each in PIPELINES if each["id"] == "press-means")


def reviewed(console: Console) -> Page:
    """Open the review of a draft that has been checked."""
    console.page.get_by_role("button", name="Review & apply").click()
    expect(console.page.get_by_role("heading", name="What it changes")).to_be_visible()
    return console.page


def change(server: Server, **keys: object) -> None:
    """Change a pipeline as another client does."""
    path = f"/api/pipelines/{MEANS['id']}"
    etag = server.get(path).headers["etag"]
    body = json.dumps({**MEANS, **keys}).encode()
    answer = server.request("PUT", path, body, {**JSON, "If-Match": etag})
    assert answer.status == 200, answer.body


def config_of(server: Server, id: str) -> dict[str, object]:
    """Return what runs under an id."""
    found: dict[str, object] = server.get(f"/api/pipelines/{id}").value["config"]
    return found


@rule(39)
def test_a_review_shows_difference_and_cost_before_anything_runs(console: Console) -> None:
    page = edited(console, "press-means")
    console.server.post(
        "press-readings", [{"press": "press-1", "temp": 61.5, "shift": n} for n in (1, 2, 3)]
    )
    exchange(page, "5000", "700")
    settled(page)

    reviewed(console)

    difference = page.get_by_role("textbox", name="what changes in the text")
    expect(difference.locator(".cm-deletedChunk")).to_contain_text("max_messages: 5000")
    expect(difference.locator(".cm-changedLine")).to_contain_text("max_messages: 700")
    plan = page.get_by_role("list", name="plan")
    expect(plan).to_contain_text("changed pipeline press-means")
    expect(plan).to_contain_text("transforms[0].max_messages")
    assert config_of(console.server, "press-means") == MEANS


def test_what_is_applied_runs_and_its_panel_opens(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")
    settled(page)
    reviewed(console)

    page.get_by_role("button", name=re.compile("^Apply")).click()

    expect(page.get_by_role("heading", name="press-means", level=2)).to_be_visible()
    assert config_of(console.server, "press-means")["transforms"][0]["max_messages"] == 700  # type: ignore[index]
    edited(console, "press-means")
    expect(text_of(page)).to_contain_text("max_messages: 700")


@rule(40)
def test_what_somebody_else_has_changed_meanwhile_is_not_overwritten(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")
    settled(page)
    reviewed(console)
    theirs = [{"type": "buffer", "size": 42}]
    change(console.server, transforms=theirs)
    console.allow("412")

    page.get_by_role("button", name=re.compile("^Apply")).click()

    expect(page.get_by_role("alert")).to_contain_text("Nothing was applied.")
    expect(page.get_by_role("textbox", name="your text")).to_contain_text("max_messages: 700")
    both = page.locator(".cm-mergeView, .cm-deletedChunk").first
    expect(both).to_contain_text("size: 42")
    assert config_of(console.server, "press-means")["transforms"] == theirs
    console.picture("both")
    assert hindering(page, is_narrow=console.look.is_narrow) == []

    page.get_by_role("button", name="Go on with mine").click()
    page.get_by_role("button", name=re.compile("^Apply")).click()

    expect(page.get_by_role("heading", name="press-means", level=2)).to_be_visible()
    assert config_of(console.server, "press-means")["transforms"] != theirs


def test_a_draft_of_an_older_version_is_told_so_in_its_review(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")
    settled(page)
    change(console.server, outputs=[])

    page.get_by_role("button", name="Review & apply").click()
    page.get_by_role("button", name="Take what runs now").click()

    expect(text_of(page)).to_contain_text("outputs: []")
    expect(text_of(page)).to_contain_text("max_messages: 5000")
    settled(page)


def test_what_is_refused_shows_why_and_changes_nothing(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "reducer", "script")
    write(page, REFUSED)
    settled(page)
    reviewed(console)
    console.allow("422|500")

    page.get_by_role("button", name=re.compile("^Apply")).click()

    expect(page.get_by_role("alert")).to_contain_text("nothing has changed")
    assert config_of(console.server, "press-means") == MEANS


REFUSED = """id: press-means
inputs:
  - type: http
    auth: { type: bearer, token: "${NOBODY_KNOWS_THIS}" }
outputs: []
"""


@rule(41)
def test_a_draft_is_there_again_after_its_tab_was_left(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")
    settled(page)
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))

    page.reload()

    expect(text_of(page)).to_contain_text("max_messages: 700")
    settled(page)
    assert asked == ["beforeunload"]


def test_a_draft_of_what_was_deleted_meanwhile_can_be_created_anew(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")
    settled(page)
    reviewed(console)
    expect(page.get_by_role("list", name="plan")).to_be_visible()
    assert console.server.request("DELETE", "/api/pipelines/press-means").status == 204
    console.allow("404")

    page.get_by_role("button", name=re.compile("^Apply")).click()
    expect(page.get_by_role("alert")).to_contain_text("was deleted meanwhile")
    page.get_by_role("button", name="Create press-means").click()

    expect(page.get_by_role("heading", name="press-means", level=2)).to_be_visible()
    assert "700" in console.server.get("/api/pipelines/press-means").body.decode()


def test_a_draft_of_a_new_pipeline_can_be_tried(console: Console) -> None:
    page = console.open("new")
    page.get_by_role("button", name=re.compile("HTTP to the terminal")).click()
    expect(problems(page)).to_contain_text("The server would take this.")
    settled(page)

    page.get_by_role("button", name="Dry run").click()

    expect(page.get_by_text("draft", exact=True)).to_be_visible()
    expect(page.get_by_text("There is no pipeline")).to_have_count(0)


def test_a_draft_that_is_given_up_is_what_runs(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "5000", "700")

    page.get_by_role("button", name="Discard").click()

    expect(text_of(page)).to_contain_text("max_messages: 5000")
    expect(page.get_by_role("button", name="Review & apply")).to_be_disabled()
    settled(page)


def test_a_new_pipeline_begins_with_an_example_and_its_panel_opens(console: Console) -> None:
    page = console.open("new")
    expect(page.get_by_role("heading", name="New pipeline")).to_be_visible()
    console.picture("choice")
    page.get_by_role("button", name=re.compile("HTTP to the terminal")).click()
    expect(problems(page)).to_contain_text("The server would take this.")
    settled(page)

    reviewed(console)
    expect(page.get_by_text("A new pipeline starts.")).to_be_visible()
    page.get_by_role("button", name="Create hot-readings").click()

    expect(page.get_by_role("heading", name="hot-readings", level=2)).to_be_visible()
    assert config_of(console.server, "hot-readings")["inputs"] == [{"type": "http"}]


def test_a_number_of_forty_digits_is_applied_with_every_digit(console: Console) -> None:
    digits = "1234567890123456789012345678901234567890"
    page = edited(console, "heartbeat")
    write(
        page,
        f"""id: heartbeat
inputs:
  - {{ type: dummy, duration: 1 }}
transforms:
  - type: filter
    Numeric: {{ field: a, operator: equal_to, value: {digits} }}
outputs: []
""",
    )
    settled(page)
    reviewed(console)

    page.get_by_role("button", name=re.compile("^Apply")).click()

    expect(page.get_by_role("heading", name="heartbeat", level=2)).to_be_visible()
    assert digits in console.server.get("/api/pipelines/heartbeat").body.decode()


@rule(48)
def test_who_may_only_read_sees_the_config_and_cannot_write(console: Console) -> None:
    page = console.page
    me = {"authentication_required": True, "username": "eva", "role": "read"}
    page.route("**/api/auth/me", lambda route: route.fulfill(json=me))

    console.open("edit/press-means")

    shown = page.get_by_role("textbox", name="config of press-means")
    expect(shown).to_have_attribute("aria-readonly", "true")
    expect(shown).to_contain_text("max_messages: 5000")
    expect(page.get_by_role("button", name="Review & apply")).to_have_count(0)
