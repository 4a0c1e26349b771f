"""The command with a fault: a post is answered as soon as it is about to be stored.

    python answersearly.py [OPTION]...

What is killed then has told of posts that it has not. The tests of kills have to find them.
"""

from __future__ import annotations

from typing import Any

from headrace.compiler.runtime.storedbatches import StoredBatches
from headrace.web.commands.cli import main

stored = StoredBatches.store


def answered(
    self: StoredBatches, payload: Any, about: Any, batch: Any, size: int, *, is_json: bool
) -> int:
    """Have it stored, and wait for nothing."""
    stored(self, payload, about, batch, size, is_json=is_json)
    return len(batch)


if __name__ == "__main__":
    StoredBatches.store = answered  # type: ignore[assignment, method-assign]
    main()
