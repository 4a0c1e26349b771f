"""Texts that look like templates: fields in braces, and words for the time, as other tools fill them in.

Here nothing does. A text that becomes the name of a file, an object, a topic is one and the same for every
message, and taken as it stands. The option that holds it says so, and what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIELD = re.compile(
    r"\{\{[^{}]{1,80}\}\}"  # {{ country }}
    r"|\$\{![^{}]{1,80}\}"  # ${! json("country") }
    r"|%\{(?!\+)[^{}]{1,80}\}"  # %{country}
    # {country}, {site.country}; neither a reference nor the {3F2504E0-...} of an id.
    r"|(?<!\$)\{[^\W\d]\w{0,80}(?:\.\w{1,80}){0,8}\}"
)
_TIME = re.compile(
    r"%\{\+[^{}]{1,80}\}"  # %{+YYYY.MM.dd}
    # %Y, %-d; neither the %DE of an encoded character nor the %d of a 100%dry.
    r"|%(?![0-9A-Fa-f]{2})[-_0^#]?(?:Y|[BDFGHIMSTUVWbdejmsuy](?![a-z]))"
)

OUTPUTS = "give each value an output of its own, with a 'when' that compares the field"
"""How messages part by a field, wherever they go."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """That a text is the same for every message, with what to do where it should not be.

    ``by_time`` where the text names files or objects; a percent sign means nothing anywhere else.
    """

    by_field: str = OUTPUTS
    by_time: str | None = None

    def taken(self, text: str) -> Iterator[tuple[str, str, str]]:
        """Yield what looks like a template, what would have been put there, and the remedy."""
        if (field := _FIELD.search(text)) is not None:
            yield field[0], "a field of a message", self.by_field
        if self.by_time is not None and (time := _TIME.search(text)) is not None:
            yield time[0], "the time", self.by_time

    def remedy(self, text: str) -> str | None:
        """Return what to do instead of a template, if the text looks like one."""
        return next((remedy for _, _, remedy in self.taken(text)), None)
