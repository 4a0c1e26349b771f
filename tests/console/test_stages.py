"""The stages of a pipeline, and what each makes of a batch."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.passing import shown_when_told
from tests.console.rules import rule

DIGITS = "1234567890123456789012345678901234567890"


REDIS = {"type": "redis", "channel": "readings"}


def created(console: Console, path: str, value: dict[str, Any]) -> None:
    """Have the server run, or file, something more."""
    assert console.server.request("POST", path, json.dumps(value).encode()).status == 201


def traced(console: Console, id: str, messages: list[dict[str, object]]) -> Page:
    """Return the page with the stages of a pipeline, and the next batch of the presses in them."""
    page = console.open(f"p/{id}/stages")
    page.get_by_role("button", name="Trace the next batch").click()
    shown_when_told(console, page.get_by_text(f"{len(messages)} message"), *messages)
    return page


def stage(page: Page, kind: str) -> Locator:
    """Return one of the stages."""
    stages = page.get_by_role("list", name="stages of").locator("> li")
    return stages.filter(has=page.locator(".kind", has_text=kind)).first


@rule(24)
def test_a_trace_shows_what_each_transform_handed_on_and_why_it_dropped_what(
    console: Console,
) -> None:
    page = traced(
        console,
        "press-alarms",
        [
            {"press": "north", "temp": 91.5},
            {"press": "south", "temp": 12},
            {"press": "east", "temp": 95},
        ],
    )

    expect(stage(page, "filter")).to_contain_text("2 in 1 batch")
    expect(stage(page, "filter")).to_contain_text("91.5")
    expect(stage(page, "filter")).to_contain_text(
        "message 1 'temp' is 12, and the condition is greater_than 88"
    )
    expect(stage(page, "recall")).to_contain_text("2 in 1 batch")


@rule(25)
def test_a_traced_recall_finds_what_its_bucket_holds_now(console: Console) -> None:
    console.server.post("press-readings", {"press": "north", "temp": 31.25})

    page = traced(console, "press-alarms", [{"press": "north", "temp": 99}])

    expect(stage(page, "recall")).to_contain_text('"last_temp":99')


def test_a_trace_that_fails_shows_where_and_why(console: Console) -> None:
    page = traced(console, "orders", [{"press": "north", "temp": 1}])

    expect(stage(page, "map")).to_contain_text("field 'order.id' is missing")


def test_a_trace_that_waits_can_be_cancelled(console: Console) -> None:
    page = console.open("p/press-alarms/stages")
    page.get_by_role("button", name="Trace the next batch").click()

    page.get_by_role("button", name="Cancel").click()

    expect(page.get_by_role("button", name="Trace the next batch")).to_be_visible()


def test_a_sample_of_an_input_is_traced(console: Console) -> None:
    page = console.open("p/heartbeat/stages")

    page.get_by_role("button", name="Trace a sample").click()

    expect(stage(page, "dummy")).to_contain_text('"value"')


def test_a_message_of_forty_digits_is_traced_with_all_of_them(console: Console) -> None:
    page = traced(console, "press-alarms", [{"press": "north", "temp": 95, "n": int(DIGITS)}])

    expect(stage(page, "recall")).to_contain_text(DIGITS)


def test_an_input_that_cannot_connect_says_why_and_when_it_is_tried_again(console: Console) -> None:
    redis = {"type": "redis", "url": "redis://127.0.0.1:1"}
    readings = {"id": "readings", "inputs": [{**REDIS, "connection": "bus"}], "outputs": []}
    created(console, "/api/connections", {"id": "bus", **redis})
    created(console, "/api/pipelines", readings)

    page = console.open("p/readings/stages")

    expect(stage(page, "redis")).to_contain_text(
        re.compile(r"not connected yet: .*127\.0\.0\.1:1.*(tried again in|being tried again)")
    )


def test_what_waits_before_a_stage_is_told_with_what_there_is_room_for(console: Console) -> None:
    page = console.open("p/press-means/stages")

    expect(stage(page, "buffer")).to_contain_text("0 of 5,000 messages")
    expect(stage(page, "file")).to_contain_text(re.compile(r"0 of [\d,]+\s+batches"))
