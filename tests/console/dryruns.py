"""Chains that are tried in a dry run on the page, and how that is done."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console
from tests.console.plant import PIPELINES, above, reads

SIX = [{"press": f"p{n % 2}", "temp": 70 + n} for n in range(6)]
WINDOW = {"type": "buffer", "seconds": 5, "max_messages": 100}
CHAINS: dict[str, list[dict[str, Any]]] = {
    "means": [
        above("temp", 60),
        WINDOW,
        {
            "type": "reducer",
            "aggregations": [{"function": "avg", "field": "temp", "as": "mean"}],
        },
    ],
    "alarms": [above("temp", 72)],
    "posting": [{"type": "http", "verb": "POST", "url": "http://127.0.0.1:9/"}],
    "crowded": [
        {"type": "splitter", "out_size": 1},
        {"type": "buffer", "size": 7, "seconds": 7200},
    ],
    "failing": [
        above("temp", 0),
        {
            "type": "map",
            "on_missing": "error",
            "mappings": [{"type": "copy", "from": "order.id", "as": "order"}],
        },
        WINDOW,
    ],
    "recalling": [{"type": "recall", "recall": ["last_temp"]}],
}
STATE = {"state": {"bucket": "machines", "key": "press"}}
CONFIG: dict[str, Any] = {
    "state": {"machines": {"max_keys": 500}},
    "pipelines": [
        PIPELINES[0],
        *(
            {"id": id, "inputs": reads("press-readings"), "transforms": chain, "outputs": []}
            | (STATE if id == "recalling" else {})
            for id, chain in CHAINS.items()
        ),
    ],
}


def tried(console: Console, id: str, messages: list[Any]) -> Page:
    """Open the dry run of a pipeline and try messages that are written by hand."""
    page = console.open(f"dryrun/{id}")
    page.get_by_label("messages", exact=True).fill("\n".join(map(json.dumps, messages)))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Run again")).to_be_enabled()
    return page


def lane(page: Page, kind: str) -> Locator:
    """Return the lane of a stage."""
    return page.get_by_role("group", name=re.compile(f"^{kind}: "))
