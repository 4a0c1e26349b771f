"""What is wrong with the failures and warnings that came, beside those that a test expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headrace.authoring.language.durations import told
from headrace.authoring.language.said import ExpectedWords
from headrace.authoring.playing.played import SaidAt
from headrace.compiler.text.diagnostics import Path

SaidKind = Literal["failures", "warnings"]

_CAME = {"failures": "failed", "warnings": "warned"}
_MISSING = {"failures": "did not fail", "warnings": "did not warn"}
MOST_TOLD = 20
"""How many texts nobody expected are told of one test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidDifference:
    """Something was said that nobody expected, or not, or not as often.

    ``path`` is where it is expected.
    """

    kind: SaidKind
    place: str
    text: str
    came: int
    """How often it was said."""
    expected: int | None
    """How often it should have been, if a test tells."""
    at: float | None = None
    """When it was said first, in seconds."""
    path: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        said: dict[str, Any] = {"kind": self.kind, "at": self.place, "says": self.text}
        if self.at is not None:
            said["moment"] = told(self.at)
        return {**said, "expected": self.expected, "found": self.came}

    def line(self) -> str:
        """Return the line that tells it."""
        where = f"{self.place}" + ("" if self.at is None else f" at {told(self.at)}")
        if not self.came:
            return f"{_MISSING[self.kind]}  {self.place}: {self.text}"
        often = "" if self.came == 1 else f" ({self.came:,} times)"
        if self.path is None:
            return f"{_CAME[self.kind]}  {where}, and nobody expected it{often}: {self.text}"
        return f"{_CAME[self.kind]}  {where}{often}, expected {self.expected}: {self.text}"


def compare_said(
    kind: SaidKind, expected: Sequence[ExpectedWords], came: Sequence[SaidAt]
) -> Iterator[SaidDifference]:
    """Yield what is wrong with all that was said; what is expected takes all that has its words."""
    counts: dict[tuple[str, str], list[float]] = {}
    for each in came:
        counts.setdefault((each.place, each.text), []).append(each.at)
    taken: set[tuple[str, str]] = set()
    for one in expected:
        said = one.said
        alike = [key for key in counts if key[0] == said.at and said.says in key[1]]
        taken |= {*alike}
        moments = [at for key in alike for at in counts[key]]
        wanted = said.times or 1
        if len(moments) == wanted or (said.times is None and moments):
            continue
        yield SaidDifference(
            kind=kind,
            place=said.at,
            text=said.says,
            came=len(moments),
            expected=wanted,
            at=min(moments, default=None),
            path=one.path,
        )
    others = [key for key in counts if key not in taken]
    for place, text in others[:MOST_TOLD]:
        moments = counts[place, text]
        yield SaidDifference(
            kind=kind, place=place, text=text, came=len(moments), expected=0, at=min(moments)
        )
