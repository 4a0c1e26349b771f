"""The connections that components can name."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console


def connection(page: Page, name: str) -> Locator:
    """Return what is shown of a connection."""
    return page.get_by_role("list", name="connections").get_by_role("listitem", name=name)


def adding(console: Console, kind: str) -> Locator:
    """Return the form of a new connection of a kind."""
    page = console.open("connections")
    page.get_by_role("button", name="Connection", exact=True).click()
    form = page.get_by_role("form", name="new connection")
    form.get_by_role("combobox", name="kind").select_option(kind)
    return form


def test_a_connection_tells_what_it_is_and_who_uses_it(console: Console) -> None:
    page = console.open("connections")

    archive = connection(page, "archive")
    expect(archive).to_contain_text("root")
    expect(archive).to_contain_text("data")
    expect(archive.get_by_role("link", name="press-means")).to_be_visible()
    expect(archive.get_by_role("button", name="Remove")).to_be_disabled()


def test_a_connection_is_added_with_its_references_and_removed(console: Console) -> None:
    form = adding(console, "redis")
    page = console.page
    form.get_by_role("textbox", name="name", exact=True).fill("cache")
    form.get_by_role("textbox", name="url", exact=True).fill("redis://app:${REDIS_PASSWORD}@cache")

    form.get_by_role("button", name="Add").click()

    cache = connection(page, "cache")
    expect(cache).to_contain_text("redis://app:${REDIS_PASSWORD}@cache")
    expect(cache).to_contain_text("nobody")
    cache.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(cache).to_have_count(0)


def test_what_the_server_refuses_is_told_beside_its_box(console: Console) -> None:
    console.allow("422")
    form = adding(console, "mqtt")
    form.get_by_role("textbox", name="name", exact=True).fill("bus")
    form.get_by_role("textbox", name="host", exact=True).fill("broker")
    form.get_by_role("textbox", name="port", exact=True).fill("70000")

    form.get_by_role("button", name="Add").click()

    port = form.get_by_role("textbox", name="port", exact=True)
    expect(port).to_have_accessible_description(re.compile("65535"))
    expect(form.get_by_role("textbox", name="host", exact=True)).to_have_value("broker")


def test_a_name_that_is_taken_cannot_be_added(console: Console) -> None:
    form = adding(console, "file")

    form.get_by_role("textbox", name="name", exact=True).fill("archive")

    expect(form).to_contain_text("There is one of this name")
    expect(form.get_by_role("button", name="Add")).to_be_disabled()


def test_a_secret_that_is_written_out_is_not_shown(console: Console) -> None:
    where = {"type": "clickhouse", "url": "https://db", "database": "d"}
    filed = {"id": "db", **where, "user": "u", "password": "letmein-please"}
    answer = console.server.request("POST", "/api/connections", json.dumps(filed).encode())
    assert answer.status == 201

    page = console.open("connections/db")

    expect(connection(page, "db")).to_contain_text("written out in the config, not shown")
    assert "letmein-please" not in page.content()


def test_a_connection_is_tried(console: Console) -> None:
    page = console.open("connections")

    connection(page, "archive").get_by_role("button", name="Test").click()

    expect(connection(page, "archive").get_by_role("status")).to_contain_text("connected in")


def test_a_connection_that_nobody_answers_says_why_before_it_is_added(console: Console) -> None:
    form = adding(console, "redis")
    form.get_by_role("textbox", name="url", exact=True).fill("redis://127.0.0.1:1")

    form.get_by_role("button", name="Test").click()

    expect(form.get_by_role("status")).to_contain_text("127.0.0.1:1")
