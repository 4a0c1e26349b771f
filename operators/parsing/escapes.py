"""Characters that stand behind a backslash in quotes."""

from __future__ import annotations

from collections.abc import Mapping


def unescaped(text: str, meant: Mapping[str, str]) -> str:
    """Return what a text stands for: two backslashes for one, others as ``meant`` has it, else as they are.

    Pairs of backslashes come first, from the left, so what is left of each begins an escape. A pattern with
    a function for each would take ten times as long.
    """
    pieces = text.split("\\\\")
    for escape, character in meant.items():
        pieces = [piece.replace(escape, character) for piece in pieces]
    return "\\".join(pieces)
