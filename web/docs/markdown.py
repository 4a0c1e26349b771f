"""The little Markdown that the generated parts are made of, and their places in a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

RegionTexts = Mapping[str, str]
"""Generated parts by their name in the marker; a page's only one needs none."""

_REGION = re.compile(
    r"^<!-- generated(?:: (?P<name>[a-z-]+))? -->\n.*?^<!-- /generated -->$",
    re.DOTALL | re.MULTILINE,
)


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


def filled(page: str, parts: RegionTexts) -> str:
    """Return a page with its parts written again.

    One that has no markers yet comes at the end; one that nobody writes stays as it is.
    """
    missing = [_region(name, text) for name, text in parts.items() if name not in named(page)]

    def again(region: re.Match[str]) -> str:
        name = region["name"] or ""
        return _region(name, parts[name]) if name in parts else region[0]

    written = _REGION.sub(again, page)
    return "\n\n".join(block for block in (written.rstrip("\n"), *missing) if block) + "\n"


def named(page: str) -> list[str]:
    """Return the names of the parts that a page has markers for; '' is the one without a name."""
    return [region["name"] or "" for region in _REGION.finditer(page)]


def _region(name: str, text: str) -> str:
    begin = f"<!-- generated: {name} -->" if name else "<!-- generated -->"
    return f"{begin}\n\n{text}\n\n<!-- /generated -->"
