"""Captures of what pipelines of a test are given, as their lines say."""

from __future__ import annotations

import json
from typing import Any

from headrace.compiler.runtime.capturing.captures import Capture


async def text_of(capture: Capture) -> bytes:
    """Return all that a capture says, and leave it."""
    text = b"".join([part async for part in capture])
    capture.close()
    return text


async def lines_of(capture: Capture) -> list[dict[str, Any]]:
    """Return its lines but the first and the last."""
    return [json.loads(line) for line in (await text_of(capture)).splitlines() if line][1:-1]


async def said_by(capture: Capture) -> list[dict[str, Any]]:
    """Return all its lines."""
    return [json.loads(line) for line in (await text_of(capture)).splitlines() if line]
