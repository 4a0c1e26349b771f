"""What pipelines remember, as tables."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Console
from tests.console.plant import PIPELINES

DIGITS = "1234567890123456789012345678901234567890"


@pytest.fixture
def config() -> Any:
    """Have room for more than one page."""
    buckets = {"machines": {"max_keys": 500}, "modes": {"max_keys": 1, "idle_timeout_secs": 3600}}
    return {"state": buckets, "pipelines": PIPELINES}


def remembered(console: Console, count: int, prefix: str = "p") -> None:
    """Have so many keys written, one after the other."""
    console.server.post(
        "press-readings", [{"press": f"{prefix}{n:03}", "temp": n} for n in range(count)]
    )


def keys(page: Page) -> list[str]:
    """Return the keys that are shown."""
    return page.locator("td.key").all_inner_texts()


def test_buckets_tell_how_full_they_are_and_who_uses_them(console: Console) -> None:
    remembered(console, 3)

    page = console.open("state")

    row = page.get_by_role("row", name="machines")
    expect(row).to_contain_text("3 of 500")
    if not console.look.is_narrow:
        expect(row).to_contain_text(re.compile("written by.*press-readings.*read by.*press-alarms"))
    expect(page.get_by_role("row", name="modes")).to_contain_text("0 of 1")
    page.get_by_role("link", name="machines").click()
    expect(page.get_by_role("heading", name="machines")).to_be_visible()
    assert page.url.endswith("#/state/machines")


def test_a_bucket_is_read_page_by_page(console: Console) -> None:
    remembered(console, 250)
    page = console.open("state/machines")
    expect(page.locator("td.key")).to_have_count(200)
    first = keys(page)

    page.get_by_role("button", name="Next").click()

    expect(page.locator("td.key")).to_have_count(50)
    assert not {*first} & {*keys(page)}
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(page.locator("td.key")).to_have_count(200)
    assert keys(page) == first


def test_keys_are_found_by_what_they_begin_with(console: Console) -> None:
    remembered(console, 20)
    remembered(console, 20, "q")
    page = console.open("state/machines")
    expect(page.locator("td.key")).to_have_count(40)

    page.get_by_role("searchbox", name="keys that begin with").fill("q01")

    expect(page.locator("td.key")).to_have_count(10)
    page.get_by_role("searchbox", name="keys that begin with").fill("nothing")
    expect(page.get_by_text("No key begins so")).to_be_visible()


def test_what_is_remembered_keeps_its_digits_and_is_text(console: Console) -> None:
    body = f'{{"press":"<b>north</b>","temp":{DIGITS}}}'.encode()
    console.server.request("POST", "/api/pipelines/press-readings/messages", body)
    page = console.open("state/machines")

    row = page.get_by_role("row", name="<b>north</b>")
    expect(row).to_contain_text(f'"last_temp":{DIGITS}')
    row.locator("summary").click()
    expect(row).to_contain_text(f'"last_temp": {DIGITS}')


def test_an_unknown_bucket_is_told_as_the_server_has_it(console: Console) -> None:
    console.allow("404")

    page = console.open("state/nowhere")

    expect(page.get_by_role("alert")).to_contain_text("no bucket named 'nowhere' is declared")


def test_an_empty_bucket_says_so(console: Console) -> None:
    page = console.open("state/modes")

    expect(page.get_by_text("The bucket is empty")).to_be_visible()
