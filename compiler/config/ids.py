"""Ids for pipelines that were given none: ``gladly-quiet-heron``."""

from __future__ import annotations

from collections.abc import Collection

LETTERS = 9
"""Longest word: with it there are forty million names."""


def generated_id(taken: Collection[str] = ()) -> str:
    """Return an adverb, an adjective and an animal, together not yet taken."""
    # Loading the words takes a few milliseconds, and few pipelines come without an id.
    import petname  # type: ignore[import-untyped]

    while (name := str(petname.generate(3, "-", LETTERS))) in taken:
        pass
    return name
