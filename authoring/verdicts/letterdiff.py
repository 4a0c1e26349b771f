"""What is wrong with the dead letters at the end of a play, beside those that a test expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.authoring.language.deadlettershape import ExpectedLetter
from headrace.authoring.playing.played import PlayedLetter
from headrace.authoring.verdicts.matching import Matching, value_text
from headrace.authoring.verdicts.pairing import as_batch
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Path

MOST_TOLD = 20
"""How many letters nobody expected are told of one test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterDifference:
    """A dead letter is there that nobody expected, or one is not, or not as often.

    ``path`` is where it is expected.
    """

    place: str
    text: str
    """What was said; of one that is not there a part of it."""
    content: str
    """What is in it, on one line; empty where nothing is expected of that."""
    came: int
    expected: int
    path: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        return {
            "kind": "dead letters",
            "at": self.place,
            "says": self.text,
            "content": self.content,
            "expected": self.expected,
            "found": self.came,
        }

    def line(self) -> str:
        """Return the line that tells it."""
        told = "".join(f": {each}" for each in (self.text, self.content) if each)
        if self.path is None:
            often = "" if self.came == 1 else f" ({self.came:,} times)"
            return f"dead letter  {self.place}, and nobody expected it{often}{told}"
        if not self.came:
            return f"no dead letter  {self.place}{told}"
        return f"dead letter  {self.place} ({self.came:,} times), expected {self.expected}{told}"


def compare_letters(
    expected: Sequence[ExpectedLetter], came: Sequence[PlayedLetter], matching: Matching
) -> Iterator[LetterDifference]:
    """Yield what is wrong with all letters; what is expected takes all that are like it."""
    taken = set[int]()
    for one in expected:
        alike = {at for at, each in enumerate(came) if _is_like(one, each, matching)}
        taken |= alike
        wanted = one.letter.times or 1
        if len(alike) == wanted or (one.letter.times is None and alike):
            continue
        content = "" if one.messages is None else value_text(one.messages)
        yield LetterDifference(
            place=one.letter.at,
            text=one.letter.says,
            content=one.letter.payload or content,
            came=len(alike),
            expected=wanted,
            path=one.path,
        )
    others = dict[tuple[str, str, str], int]()
    for at, each in enumerate(came):
        if at not in taken:
            key = (each.place, f"{each.failure}: {each.text}", _content(each))
            others[key] = others.get(key, 0) + 1
    for (place, text, content), count in [*others.items()][:MOST_TOLD]:
        yield LetterDifference(place=place, text=text, content=content, came=count, expected=0)


def _is_like(expected: ExpectedLetter, came: PlayedLetter, matching: Matching) -> bool:
    wanted = expected.letter
    return (
        came.place == wanted.at
        and wanted.says in came.text
        and wanted.class_ in (None, came.failure)
        and wanted.stage in (None, came.stage)
        and wanted.payload in (None, came.payload.decode(errors="replace"))
        and (expected.messages is None or _holds(expected.messages, came.messages, matching))
    )


def _holds(expected: JsonValue, messages: JsonValue, matching: Matching) -> bool:
    return messages is not None and matching.holds(as_batch(expected), messages)


def _content(letter: PlayedLetter) -> str:
    return value_text(
        letter.payload.decode(errors="replace") if letter.messages is None else letter.messages
    )
