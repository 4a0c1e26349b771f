"""The little Markdown that the generated parts are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def code(text: str) -> str:
    """Return a word as code."""
    return f"`{text}`"


def fenced(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def link(text: str, target: str) -> str:
    """Return a link."""
    return f"[{text}]({target})"


def anchor(heading: str) -> str:
    """Return what a link to a heading of the same page looks like.

    Source: the rule of GitHub: lower case, blanks to hyphens, no punctuation.
    """
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
