"""The marked parts of a page, and what replaces them."""

from __future__ import annotations

import re
from collections.abc import Mapping

RegionTexts = Mapping[str, str]
"""Generated parts by their name in the marker; a page's only one needs none."""

_REGION = re.compile(
    r"^(?P<begin><!-- generated(?:: (?P<name>[a-z-]+))? -->)\n.*?^(?P<end><!-- /generated -->)$",
    re.DOTALL | re.MULTILINE,
)


def filled(page: str, parts: RegionTexts) -> str:
    """Return a page with its parts written again; one that has no markers yet comes at the end."""
    missing = [_region(name, text) for name, text in parts.items() if name not in named(page)]
    written = _REGION.sub(lambda region: _again(region, parts), page)
    return "\n\n".join(block for block in (written.rstrip("\n"), *missing) if block) + "\n"


def named(page: str) -> list[str]:
    """Return the names of the parts that a page has markers for; '' is the one without a name."""
    return [region["name"] or "" for region in _REGION.finditer(page)]


def _again(region: re.Match[str], parts: RegionTexts) -> str:
    """Return a region with its new text; one that nobody writes stays as it is."""
    text = parts.get(region["name"] or "")
    return region[0] if text is None else f"{region['begin']}\n\n{text}\n\n{region['end']}"


def _region(name: str, text: str) -> str:
    begin = f"<!-- generated: {name} -->" if name else "<!-- generated -->"
    return f"{begin}\n\n{text}\n\n<!-- /generated -->"
