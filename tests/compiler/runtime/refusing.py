"""A sink that refuses messages as servers do, for what finds out which of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.bisectingsink import BisectingSink

Refuses = Callable[[Batch], Exception | None]
"""Returns why a batch is not taken, or None."""


class Taking(AwaitingSink):
    """Takes what it does not refuse."""

    def __init__(self, refuses: Refuses = lambda _: None, at_once: int = 1) -> None:
        self._refuses, self.at_once = refuses, at_once
        self.taken: list[Any] = []
        self.tries: list[Batch] = []
        self.is_apart = False

    def tell_apart(self) -> None:
        self.is_apart = True

    async def write(self, batch: Batch) -> None:
        assert batch
        self.tries.append(batch)
        if (cause := self._refuses(batch)) is not None:
            if isinstance(cause, BatchFailed):
                self.taken += [batch[place] for place in cause.done]
            raise cause
        self.taken += batch


def refusing(bad: Collection[Any], *, took_nothing: bool = True) -> Refuses:
    """Return what refuses a batch as a whole for the first of its bad messages."""

    def refuses(batch: Batch) -> Exception | None:
        found = next((each for each in batch if each in bad), None)
        if found is None:
            return None
        return BatchFailed(f"{found} is bad", took_nothing=took_nothing, is_answered=True)

    return refuses


def telling(bad: Collection[Any]) -> Refuses:
    """Return what refuses a batch and tells which of its messages are bad; it takes nothing of it."""

    def refuses(batch: Batch) -> Exception | None:
        refused = {at: f"{each} is bad" for at, each in enumerate(batch) if each in bad}
        return BatchFailed("some are bad", refused=refused) if refused else None

    return refuses


async def failed(it: BisectingSink, batch: Batch) -> BatchFailed:
    """Return what the writing of a batch raises."""
    with pytest.raises(BatchFailed) as failure:
        await it.write(batch)
    return failure.value
