"""How many there are of something, in words."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return how many of something there are: ``1 part``, ``65,537 parts``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
