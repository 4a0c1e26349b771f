"""Writing a config: what is wrong with it shows while it is written, and the form is the same text."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.console.browser import Console
from tests.console.rules import rule
from tests.console.writing import (
    at,
    edited,
    exchange,
    form,
    problems,
    settled,
    shows_text,
    text_of,
    word,
    write,
)

FUNCTIONS = [
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "count_distinct",
    "first",
    "last",
    "collect",
    "median",
    "stddev",
]

BEHIND = """
  - type: filter
    Numeric:
      field: value
      operator: less_than
      value: 3"""
"""One more transform, behind what makes one message of many."""


@rule(30)
def test_a_misspelt_key_is_marked_in_its_line_in_the_chain_and_in_the_list(
    console: Console,
) -> None:
    page = edited(console, "press-means")

    exchange(page, "seconds", "secnds")

    expect(problems(page)).to_contain_text("unknown key 'secnds'")
    expect(text_of(page).locator(".cm-lintRange-error", has_text="secnds")).to_be_visible()
    expect(page.locator(".cm-lint-marker-error").first).to_be_visible()
    expect(
        form(console).get_by_role("button", name=re.compile("buffer.*has a problem"))
    ).to_be_visible()


@rule(31)
def test_a_problem_with_a_replacement_is_mended_by_a_button(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "seconds", "secnds")

    page.get_by_role("button", name="use seconds").click()

    expect(text_of(page)).to_contain_text("seconds: 5")
    expect(problems(page)).to_contain_text("The server would take this.")


@rule(32)
def test_a_problem_that_is_clicked_has_the_cursor_at_its_place(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "avg", "average")
    at(page, "outputs")

    problems(page).get_by_role("button", name=re.compile('found "average"')).click()
    page.keyboard.insert_text("X")

    expect(text_of(page)).to_contain_text("function: Xaverage")
    settled(page)


@rule(32)
def test_f8_and_brackets_lead_from_problem_to_problem(console: Console) -> None:
    page = edited(console, "press-means")
    exchange(page, "avg", "average")
    exchange(page, "seconds", "secnds")
    settled(page)
    page.keyboard.press("Escape")

    page.keyboard.press("F8")
    page.keyboard.insert_text("X")
    expect(text_of(page)).to_contain_text("function: X")

    settled(page)
    problems(page).get_by_role("button").first.focus()
    page.keyboard.press("[")  # to the beginning of that one
    page.keyboard.press("[")
    expect(page.locator(".cm-activeLine")).to_contain_text("secnds")
    page.keyboard.press("]")
    expect(page.locator(".cm-activeLine")).to_contain_text("X")


@rule(33)
def test_form_chain_and_docs_show_the_key_that_the_cursor_is_at(console: Console) -> None:
    page = edited(console, "press-means")

    word(page, "group_by").click()

    aside = form(console)
    expect(aside.get_by_role("region", name="form of reducer")).to_be_visible()
    expect(aside.get_by_text("Fields whose values make a group.")).to_be_visible()
    current = aside.locator("[aria-current=step]")
    expect(current).to_contain_text("reducer")
    expect(current).to_contain_text("group_by")


@rule(34)
def test_on_an_empty_line_the_keys_are_offered_less_those_that_stand_there(
    console: Console,
) -> None:
    page = edited(console, "press-readings")

    word(page, "operator").click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    page.keyboard.press("Control+Space")

    expect(page.locator(".cm-completionLabel")).to_have_text(["operator"])
    settled(page)


@rule(35)
def test_after_function_the_functions_are_offered(console: Console) -> None:
    page = edited(console, "press-means")

    exchange(page, "count", " ")
    page.keyboard.press("Control+Space")

    expect(page.locator(".cm-completionLabel")).to_have_text(FUNCTIONS)
    settled(page)


def post_until(console: Console, shown: Locator) -> None:
    """Post messages until something shows that they were read: nobody tells when reading begins."""
    message = {"bar": "2.5", "line": {"name": "a"}}
    for _ in range(50):
        console.server.post("line-pressure", [message] * 10)
        try:
            expect(shown).to_be_visible(timeout=200)
        except AssertionError:
            continue
        return
    expect(shown).to_be_visible()


@rule(36)
def test_fields_of_a_sample_are_offered_where_they_reach(console: Console) -> None:
    page = edited(console, "pressure-windows")
    aside = form(console)
    aside.get_by_role("button", name="sample").click()
    post_until(console, aside.get_by_role("button", name="3 fields"))

    shows_text(console)
    word(page, "aggregations").click()
    form(console).get_by_role("button", name="mean", exact=True).click()
    aside.get_by_role("combobox", name="field").fill("")

    offered = page.get_by_role("listbox", name="field: what there is").get_by_role("option")
    expect(offered).to_have_text([re.compile("bar"), re.compile("line"), re.compile("line.name")])
    expect(offered.first).to_contain_text("number, 2.5")

    offered.first.click()

    shows_text(console)
    at(page, "bar")
    page.keyboard.insert_text(BEHIND)
    settled(page)
    word(page, "Numeric").click()
    form(console).get_by_role("combobox", name="field").fill("")
    expect(offered).to_have_text([re.compile("mean")])


@rule(37)
def test_a_comment_stays_when_a_box_changes_a_value(console: Console) -> None:
    page = edited(console, "press-means")
    at(page, "seconds")
    page.keyboard.insert_text("  # not longer than a shift")

    form(console).get_by_role("textbox", name="seconds").fill("7")
    page.keyboard.press("Enter")

    shows_text(console)
    expect(text_of(page)).to_contain_text("seconds: 7  # not longer than a shift")
    settled(page)


@rule(38)
def test_apply_is_off_while_there_are_problems_and_says_how_many(console: Console) -> None:
    page = edited(console, "press-means")

    write(page, "id: press-means\ninputs:\n  - type: htp\nouputs: []\n")

    apply = page.get_by_role("button", name="Apply: 2 problems")
    expect(apply).to_be_disabled()


NESTED = """id: pressure-windows
inputs:
  - type: pipeline
    upstream: line-pressure
    when:
      - type: any
        conditions:
          - type: not
            conditions:
              - type: numeric
                field: bar
                operator: at_least
                value: 80
outputs: []
"""
CONDITIONS = [
    "numeric",
    "string",
    "length",
    "boolean",
    "exists",
    "one_of",
    "matches",
    "any",
    "all",
    "not",
]


@rule(61)
def test_kinds_keys_and_fields_are_offered_in_the_innermost_of_conditions(
    console: Console,
) -> None:
    page = edited(console, "pressure-windows")
    aside = form(console)
    aside.get_by_role("button", name="sample").click()
    post_until(console, aside.get_by_role("button", name="3 fields"))
    shows_text(console)
    write(page, NESTED)
    settled(page)
    offered = page.locator(".cm-completionLabel")

    at(page, "value")
    page.keyboard.insert_text("\n                ")
    page.keyboard.press("Control+Space")
    expect(offered).to_have_text(["other"])
    page.keyboard.press("Escape")

    page.keyboard.insert_text("\n              - ")
    page.keyboard.press("Control+Space")
    expect(offered).to_have_text(CONDITIONS)
    page.keyboard.press("Escape")

    page.keyboard.insert_text("type: exists\n                field: ")
    page.keyboard.press("Control+Space")
    expect(offered).to_have_text(["bar", "line", "line.name"])
    page.keyboard.press("Enter")
    expect(text_of(page)).to_contain_text("field: bar")


@rule(62)
def test_a_condition_is_added_inside_others_by_the_form(console: Console) -> None:
    page = edited(console, "pressure-windows")
    write(page, NESTED)
    settled(page)
    at(page, "not")

    aside = form(console)
    aside.get_by_role("button", name="add to conditions").click()

    inner = aside.get_by_role("region", name="form of numeric")
    expect(inner).to_be_visible()
    inner.get_by_label("operator").select_option("at_most")
    inner.get_by_role("textbox", name="value").fill("5")
    page.keyboard.press("Enter")
    shows_text(console)
    expect(text_of(page)).to_contain_text("operator: at_most")
    expect(text_of(page)).to_contain_text("value: 5")

    for outer in ("not", "any"):
        form(console).get_by_role("button", name=outer, exact=True).click()
        region = form(console).get_by_role("region", name=f"form of {outer}")
        expect(region).to_be_visible()
    expect(region.get_by_role("button", name="not", exact=True)).to_be_visible()
