"""What a replay of one letter would send, as far as that is known without a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.compiler.component.families import Stage

MOST_LOOKED_AT = 200
"""Messages of a letter that are told: as many as a dry run uses."""


class LetterLook(msgspec.Struct, frozen=True):
    """What would go in, and where. At an input it is what that has made of it."""

    stage: Stage
    index: int
    """Of what it would go into, in the list of its stage."""
    messages: Sequence[Any]
    """The first of them."""
    count: int
    """How many there are."""
    failure: str | None
    """Why there are none, which is how it would fail again."""
    warnings: Sequence[str]
    """Of the input."""
    has_changed: bool
    """Whether the config is another one than when the letter failed."""
    changed: Sequence[str]
    """Its settings that are others since, as far as that is known."""

    @property
    def first_transform(self) -> int | None:
        """The index of the first transform that it would pass; None: it goes into an output."""
        if self.stage == "output":
            return None
        return self.index if self.stage == "transform" else 0
