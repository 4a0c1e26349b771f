"""What everyday jobs are made of: conditions, formats, texts that are taken apart, what fails elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.writing import (
    at,
    edited,
    form,
    problems,
    settled,
    shows_text,
    text_of,
    write,
)

HOT = {"type": "numeric", "field": "temp", "operator": "at_least", "value": 80}


@pytest.fixture
def config() -> Any:
    """Return two pipelines: one of many kinds, and one that reads what fails there."""
    return [
        {
            "id": "rows",
            "inputs": [{"type": "http", "format": "csv", "csv": {"types": {"temp": "float"}}}],
            "transforms": [
                {
                    "type": "parse",
                    "from": "topic",
                    "split": {"by": "/", "into": [None, "machine", None]},
                },
                {"type": "filter", "when": [HOT, {"type": "not", "conditions": [HOT]}]},
                {"type": "map", "mappings": [{"type": "rename", "fields": {"temp": "celsius"}}]},
                {"type": "explode", "from": "tags", "as": "tag", "on_error": "skip"},
            ],
            "outputs": [{"type": "stdout", "when": [{"type": "exists", "field": "tag"}]}],
        },
        {
            "id": "faults",
            "inputs": [{"type": "failures", "upstream": ["rows"]}],
            "outputs": [{"type": "stdout"}],
        },
    ]


def test_each_of_their_stages_is_shown_with_what_it_does(console: Console) -> None:
    console.open("")
    expect(console.card("rows")).to_be_visible()
    expect(console.card("faults")).to_be_visible()
    console.picture("cards")

    page = console.open("p/rows/stages")
    for said in ["topic by split", "temp ≥ 80 and not temp ≥ 80", "celsius", "tags"]:
        expect(page.get_by_text(said, exact=True)).to_be_visible()
    console.picture("stages")


@pytest.mark.wide_only
def test_a_line_to_what_reads_failures_alone_is_broken_and_says_so(console: Console) -> None:
    page = console.open("")

    wire = page.get_by_role("img", name="rows to faults")
    expect(wire.get_by_text("rows → faults: what fails in it")).to_be_attached()
    expect(wire.locator("path.line")).to_have_css("stroke-dasharray", "5px, 5px")


ROWS = """id: rows
inputs:
  - type: http
    format: csv
    csv:
      columns: [topic, null, temp]
      types:
        temp: float
transforms:
  - type: parse
    from: topic
    split:
      by: /
      into: [null, machine, signal]
outputs: []
"""


def test_a_format_is_chosen_in_the_form_and_offered_in_the_text(console: Console) -> None:
    page = edited(console, "rows")
    write(page, ROWS)
    settled(page)
    at(page, "format")

    aside = form(console)
    chosen = aside.get_by_label("format")
    expect(chosen).to_have_value("csv")
    expect(chosen.get_by_role("option")).to_have_text(
        ["not set", "json", "text", "lines", "ndjson", "csv"]
    )
    chosen.select_option("ndjson")
    shows_text(console)
    settled(page)
    expect(problems(page)).to_contain_text("'csv'")
    form(console)
    chosen.select_option("csv")
    aside.get_by_role("button", name="open csv").click()
    form(console)
    expect(aside.get_by_role("region", name="form of csv")).to_be_visible()
    expect(aside.get_by_label("decimal")).to_be_visible()
    console.picture("csv")

    shows_text(console)
    offered = page.locator(".cm-completionLabel")
    before, behind = ROWS.split("float")
    write(page, before)
    page.keyboard.press("Control+Space")
    expect(offered).to_have_text(
        ["text", "integer", "float", "boolean", "timestamp", "date", "uuid", "json"]
    )
    offered.filter(has_text="float").click()
    expect(text_of(page)).to_contain_text("temp: float")
    page.keyboard.insert_text(behind)
    settled(page)
    expect(problems(page)).to_contain_text("The server would take this.")


def test_names_that_may_be_null_are_written_in_the_form(console: Console) -> None:
    page = edited(console, "rows")
    write(page, ROWS)
    settled(page)
    at(page, "into")

    aside = form(console)
    split = aside.get_by_role("region", name="form of split")
    expect(split.get_by_text("list of string | null")).to_be_visible()
    console.picture("into")
    first, third = (split.get_by_label(f"into {n}", exact=True) for n in (1, 3))
    expect(first).to_have_value("null")
    first.fill("site")
    page.keyboard.press("Enter")
    third.fill("null")
    page.keyboard.press("Enter")
    split.get_by_label("into, one more").fill("1")
    page.keyboard.press("Enter")

    shows_text(console)
    expect(text_of(page)).to_contain_text('into: [site, machine, null, "1"]')
    settled(page)
    expect(problems(page)).to_contain_text("The server would take this.")


def test_an_object_of_names_is_begun_in_the_form_and_written_in_the_text(console: Console) -> None:
    page = edited(console, "rows")
    write(page, ROWS)
    settled(page)
    at(page, "from")

    form(console).get_by_role("button", name="add types").click()
    expect(form(console).get_by_text("as cast of a map does it")).to_be_visible()
    shows_text(console)
    expect(text_of(page)).to_contain_text("types: {}")
    page.locator(".cm-activeLine").click()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("machine: ")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-completionLabel").first).to_have_text("text")
    page.locator(".cm-completionLabel").first.click()

    expect(text_of(page)).to_contain_text("types: {machine: text}")
    settled(page)
    expect(problems(page)).to_contain_text("The server would take this.")
