"""Run an async test on the virtual loop, where an hour takes no time.

    @virtual
    async def test_the_window_ends_after_an_hour(): ...

    @virtual(started_at=datetime(2026, 3, 29, tzinfo=UTC), patience=0.1)
    async def test_...

Fixtures arrive as usual, but are made outside the loop. Inside, `Clock(asyncio.get_running_loop())`
is the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial, wraps
from typing import Any, overload

from headrace.compiler.clock import run_virtual

AsyncTest = Callable[..., Coroutine[Any, Any, None]]
Test = Callable[..., None]


@overload
def virtual(test: AsyncTest) -> Test: ...


@overload
def virtual(
    *, started_at: datetime | None = None, patience: float = 5.0
) -> Callable[[AsyncTest], Test]: ...


def virtual(test: AsyncTest | None = None, **options: Any) -> Test | Callable[[AsyncTest], Test]:
    """Return the test as a plain one, which runs on a virtual loop of its own."""
    if test is None:
        return partial(virtual, **options)

    @wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        run_virtual(partial(test, *arguments, **fixtures), **options)

    return run
