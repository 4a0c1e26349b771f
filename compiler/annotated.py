"""Types that are encoded as others are, and what the description of an answer has of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
"""What is never negative."""
Millis = Annotated[Count, msgspec.Meta(description="Milliseconds since 1970.")]


@dataclass(frozen=True, slots=True)
class DescribedAs:
    """What a type stands for, in the description: of a text that is written already, what it holds."""

    kind: Any
