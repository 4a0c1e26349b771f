"""Tests on the event loop that the server runs on, for what depends on how that one writes.

asyncio's own takes all that is handed over at once, and has nobody wait, in Python 3.12.0 to 3.12.8 and
3.13.0 to 3.13.1.

Source: https://github.com/python/cpython/issues/127655
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import uvloop

Test = Callable[..., Coroutine[Any, Any, None]]


def on_the_loop_of_the_server(test: Test) -> Callable[..., None]:
    """Have a test run on uvloop, with the fixtures that it asks for."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
