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
LISTS = ((), ("failures",), ("state",), ("connections",), ("save",), ("revert",), ("wall",))
"""Screens on which all of them stand."""
SCREENS = (
    *(("p", "{}", tab) for tab in ("live", "stages", "failures", "history")),
    ("state", "{}"),
    ("edit", "{}"),
    ("edit", "{}", "review"),
    ("dryrun", "{}"),
    ("p", "{} is not there"),
)
"""Those of one alone."""
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


def pipelines(name: str) -> list[Any]:
    """Return two pipelines in which a pipeline, a bucket, fields and a connection are named so."""
    copy = {"type": "copy", "from": f"missing {name}".replace(".", ""), "as": "x"}
    return [
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
    ]


@pytest.fixture(params=[[*NAMES.values()]], ids=["all"])
def names(request: pytest.FixtureRequest) -> list[str]:
    """Give the names that something has."""
    given: list[str] = request.param
    return given


@pytest.fixture
def config(names: list[str]) -> Any:
    """Have all that has a name, by each of them."""
    return {
        "state": {name: {"max_keys": 10} for name in names},
        "pipelines": [each for name in names for each in pipelines(name)],
    }


@pytest.fixture
def server(tmp_path: Path, config: Any, names: list[str]) -> Iterator[Server]:
    """Give a server whose connections are named so as well, with messages that say all of it."""
    connections = {name: {"type": "file", "root": "data"} for name in names}
    (tmp_path / "config.connections.json").write_text(json.dumps(connections))
    with serving(tmp_path, config, "--data-dir", "data") as server:
        for name in names:
            server.post(name, hostile(name))
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


@pytest.mark.parametrize("names", [[name] for name in NAMES.values()], ids=NAMES, indirect=True)
def test_a_name_is_text_at_every_screen_of_its_own(console: Console, names: list[str]) -> None:
    [name] = names
    page = opened(console)

    for screen in SCREENS:
        load(console, screen, name)
        shows(page, name)
        if screen[2:] == ("live",):
            row = page.get_by_role("list", name="messages of").get_by_role("button").first
            shown_when_told(console, row, *hostile(name), pipeline=name)
            row.click()
        moves_nothing(console, screen)


def test_names_are_text_where_all_of_them_stand(console: Console, names: list[str]) -> None:
    page = opened(console)

    for screen in LISTS:
        load(console, screen)
        if screen in ((), ("wall",)):
            expect(page.get_by_text(f"{len(names)} failing")).to_be_visible()
        for name in () if screen in (("save",), ("revert",)) else names:
            shows(page, name)
        moves_nothing(console, screen)


def opened(console: Console) -> Page:
    """Open the page of a server, in which a script that was run would be told of."""
    console.context.add_init_script(RAN)
    console.allow("404")
    return console.open()


def load(console: Console, screen: tuple[str, ...], name: str = "") -> None:
    """Load the page at a screen; it has shown nothing of it before."""
    address = "/".join(encoded(part.format(name)) for part in screen)
    console.page.evaluate("(at) => history.replaceState(null, '', `#/${at}`)", address)
    console.page.reload()
    expect(console.page.locator("main")).to_be_visible()


def moves_nothing(console: Console, screen: tuple[str, ...]) -> None:
    """Look that nothing of a name was taken for markup, and that it moves nothing that is not its own."""
    page = console.page
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
