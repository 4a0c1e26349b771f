"""What everyday jobs are made of: conditions, formats, texts that are taken apart, what fails elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console

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
            "outputs": [{"type": "stdout", "when": [HOT]}],
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
