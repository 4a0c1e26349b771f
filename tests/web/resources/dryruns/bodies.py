"""Pieces of bodies that ask for a dry run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import falcon.testing

Client = falcon.testing.ASGIConductor
Post = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
ONES = {"type": "filter", "Numeric": {"field": "n", "operator": "equal_to", "value": 1}}
AUTO = [{"type": "string", "field": "mode", "operator": "equal_to", "value": "auto"}]


def inline(code: str) -> dict[str, Any]:
    return {"type": "inline", "code": code}


def script(code: str) -> dict[str, Any]:
    return {"type": "script", "source": inline(code)}


ONES_OR_ALL = {"type": "splitter", "out_size": 1}
