"""A pipeline beside the canvas."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.browser import Console


def test_a_pipeline_is_deleted_after_a_question(console: Console) -> None:
    page = console.open("p/press-means/live")
    page.get_by_role("button", name="more about press-means").click()
    page.get_by_role("button", name="Delete…").click()
    question = page.get_by_role("dialog", name="Delete press-means?")
    expect(question).to_contain_text("The config file is not changed")

    question.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="press-means", level=2)).to_be_visible()
    page.get_by_role("button", name="more about press-means").click()
    page.get_by_role("button", name="Delete…").click()
    question.get_by_role("button", name="Delete").click()

    expect(page.get_by_text("press-means is deleted")).to_be_visible()
    expect(console.card("press-means")).to_have_count(0)
    assert page.url == f"{console.origin}/#/"


def test_the_question_names_who_reads_from_it(console: Console) -> None:
    page = console.open("p/orders")
    page.get_by_role("button", name="more about orders").click()
    page.get_by_role("button", name="Delete…").click()

    expect(page.get_by_role("dialog")).to_contain_text("audit reads from it")


def test_the_address_of_a_panel_is_copied(console: Console) -> None:
    page = console.open("p/orders/stages")
    page.get_by_role("button", name="more about orders").click()
    page.get_by_role("button", name="Copy link").click()

    expect(page.get_by_text("copied the address")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{console.origin}/#/p/orders/stages"
