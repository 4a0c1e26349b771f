"""Settings of the page that people watch: whether it is served, and which pages may show it in a frame.

Source: https://www.w3.org/TR/CSP3/#directive-frame-ancestors
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headrace.compiler.schema.fields import Boolean, Text, refused
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault, printable

OWN, NOBODY = "'self'", "'none'"
MOST_SOURCES = 100

_KEYWORDS = {"self": OWN, "none": NOBODY, OWN: OWN, NOBODY: NOBODY}
_SOURCE = re.compile(
    r"(?P<source>"
    r"(?:[a-z][a-z0-9+.-]*://)?(?:\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)"
    r"(?::(?:\*|(?P<port>[0-9]{1,5})))?"
    r"|[a-z][a-z0-9+.-]*:"
    r")(?P<path>/(?!/).*)?",
    re.IGNORECASE,
)


class FrameSource(Text):
    """Where pages come from that may show the console in a frame."""

    expects = "self, none, or an origin such as https://portal.example:8443 or https://*.example"

    def read(self, value: Any) -> str:
        """Return a source as a policy has it: a keyword in its quotes."""
        text: str = super().read(value)
        if text.lower() in _KEYWORDS:
            return _KEYWORDS[text.lower()]
        found = _SOURCE.fullmatch(text)
        if found and not found["path"] and 0 < int(found["port"] or 1) < 65536:
            return text
        raise refused(
            "not-a-url",
            f"'{printable(text)}' is no place that pages come from",
            found=text,
            expected=self.expects,
            hint=f"write {found['source']}" if found and found["path"] else None,
        )


class ConsoleSettings(Record):
    """The page that people watch."""

    enabled: bool = option(Boolean(), "Whether the page is served.", default=True, additive=True)
    frame_ancestors: tuple[str, ...] = option(
        ListOf(FrameSource(), at_most=MOST_SOURCES, noun="source"),
        "Which pages may show it in a frame, as `frame-ancestors` of a Content-Security-Policy has it:"
        " `self`, `none`, origins.",
        default=(OWN,),
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Nobody is alone."""
        if NOBODY in self.frame_ancestors and len(self.frame_ancestors) > 1:
            yield Fault(
                "conflict",
                "no page may show the console, and some may",
                expected="'none' alone, or the others",
                path=("frame_ancestors",),
            )

    @property
    def policy(self) -> str:
        """The directive of a Content-Security-Policy: ``frame-ancestors 'self'``."""
        return " ".join(["frame-ancestors", *(self.frame_ancestors or [NOBODY])])
