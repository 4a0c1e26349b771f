"""Names and messages that somebody wrote to do harm, at every screen: they are text, and move nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.console.barriers import hindering
from tests.console.browser import WIDE, Console
from tests.console.passing import shown_when_told
from tests.console.plant import HTTP, reads
from tests.forked import serving
from tests.server import Server

NAMES = {
    "markup": '"><img src=x onerror=alert(1)><script>alert(1)</script>',
    "direction marks": "\u202egnp.exe\u2066\u200f",
    "control characters": "a\x1b[31m\x07\x00\nb",
    "an address": "javascript:alert(1)//../%2F..%00#/p/x?y=&z",
    "a prototype": "__proto__",
    "wide": "\N{ARABIC LIGATURE BISMILLAH AR-RAHMAN AR-RAHEEM}" * 200,
}
LONG = "W" * 20_000
SCREENS = (
    (),
    *(("p", "{}", tab) for tab in ("live", "stages", "failures", "history")),
    ("failures",),
    ("state",),
    ("state", "{}"),
    ("connections",),
    ("edit", "{}"),
    ("edit", "{}", "review"),
    ("dryrun", "{}"),
    ("save",),
    ("revert",),
    ("wall",),
    ("p", "{} is not there"),
)
RAN = "addEventListener('click', () => {}); window.alert = () => console.error('it was run');"
# A mark that changes the direction of what follows ends where its element does, or stands alone in a block.
ESCAPING = """() => {
  const marks = /[\\u202a-\\u202e\\u2066-\\u2069\\u200f]/;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let text; (text = walker.nextNode());) {
    if (!marks.test(text.data) || !text.parentElement.checkVisibility()) continue;
    let at = text.parentElement;
    while (at && getComputedStyle(at).unicodeBidi === "normal"
           && getComputedStyle(at).display.startsWith("inline")) at = at.parentElement;
    const style = at && getComputedStyle(at);
    const alone = at && at.textContent === text.data;
    const isolated = at && /isolate|plaintext/.test(style.unicodeBidi);
    if (at && !alone && !isolated) found.push(at.outerHTML.slice(0, 300));
  }
  return found;
}"""


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Give one name for all that has one."""
    given: str = request.param
    return given


@pytest.fixture
def config(name: str) -> Any:
    """Name a pipeline, a bucket, fields and a connection so."""
    copy = {"type": "copy", "from": f"missing {name}".replace(".", ""), "as": "x"}
    return {
        "state": {name: {"max_keys": 10}},
        "pipelines": [
            {
                "id": name,
                "inputs": [HTTP],
                "state": {"bucket": name, "key": "k"},
                "transforms": [{"type": "remember", "remember": [{"field": "v", "as": name}]}],
                "outputs": [{"type": "file", "connection": name, "path": "p"}],
            },
            {
                "id": f"reads {name}",
                "inputs": reads(name),
                "transforms": [{"type": "map", "on_missing": "error", "mappings": [copy]}],
                "outputs": [],
            },
        ],
    }


@pytest.fixture
def server(tmp_path: Path, config: Any, name: str) -> Iterator[Server]:
    """Give a server whose connection is named so as well, with one message that says all of it."""
    connections = {name: {"type": "file", "root": "data"}}
    (tmp_path / "config.connections.json").write_text(json.dumps(connections))
    with serving(tmp_path, config, "--data-dir", "data") as server:
        yield server


def hostile(name: str) -> list[dict[str, str]]:
    """Return a message whose field, key and text are the name, and one that is as long as it is wide."""
    return [{"k": name, "v": name, name: name}, {"k": "long", "v": LONG}]


def shows(page: Page, name: str) -> None:
    """Wait until the name is somewhere in what is shown, as it is or as JSON has it."""
    page.wait_for_function(
        """([name, json]) => [...document.querySelectorAll("main *")].some((it) =>
             it.title?.includes?.(name) || it.value?.includes?.(name)
             || it.textContent.includes(name) || it.textContent.includes(json))""",
        arg=[name, json.dumps(name, ensure_ascii=False)[1:-1]],
    )


def test_a_name_is_text_at_every_screen(console: Console, name: str) -> None:
    console.context.add_init_script(RAN)
    console.allow("404")
    page = console.page
    console.server.post(name, hostile(name))

    for screen in SCREENS:
        console.open("/".join(encoded(part.format(name)) for part in screen))
        page.reload()
        expect(page.locator("main")).to_be_visible()
        if screen in ((), ("wall",)):
            expect(page.get_by_text("1 failing")).to_be_visible()
        if screen not in (("save",), ("revert",)):
            shows(page, name)
        if screen[2:] == ("live",):
            row = page.get_by_role("list", name="messages of").get_by_role("button").first
            shown_when_told(console, row, *hostile(name), pipeline=name)
            row.click()
        page.wait_for_load_state("networkidle")

        where = "/".join(screen)
        assert page.locator("img[src=x], main script").count() == 0, where
        assert page.evaluate(ESCAPING) == [], where
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        if console.look is not WIDE:  # the dark one has the same elements
            assert hindering(page, is_narrow=console.look.is_narrow) == [], where


def encoded(part: str) -> str:
    """Return a part of an address."""
    return quote(part, safe="")
