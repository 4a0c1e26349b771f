"""Messages that pass while a page begins to listen: nobody else is told when it does."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect

from tests.clients import PATIENCE
from tests.console.browser import Console

EACH_SECONDS = 1.0
"""How long what was posted has to show, before more is."""


def shown_when_told(
    console: Console, sign: Locator, *messages: dict[str, Any], pipeline: str = "press-readings"
) -> None:
    """Post to a pipeline until there is a sign of it: by default a reading of 0.125."""
    for _ in range(int(PATIENCE / EACH_SECONDS)):
        console.server.post(pipeline, [*messages] or [{"press": "first", "temp": 0.125}])
        try:
            expect(sign.first).to_be_visible(timeout=EACH_SECONDS * 1000)
        except AssertionError:
            continue
        return
    expect(sign.first).to_be_visible()
