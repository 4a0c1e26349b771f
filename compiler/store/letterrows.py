"""Dead letters as they go into the database of a store and come out of it: records, figures, pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

LETTER_BYTES = 448
"""What a letter takes on the disk beside its body and its texts, roughly."""


class Letter(NamedTuple):
    """What is known of a letter beside its body. Times are seconds since 1970."""

    pipeline: str
    stage: str
    component: int | None
    """Its index in the list of its stage."""
    input_index: int | None
    target: str | None
    failure: str
    """The class of the failure."""
    message: str
    """What went wrong, as failures are grouped."""
    detail: str | None
    """The same in full."""
    first_seen: float
    last_seen: float
    tries: int
    maybe_written: bool
    received_at: float | None
    config: str | None
    """The hash of the pipeline then."""
    messages: int
    """How many are in its body."""


LetterPlace = tuple[str, str]
"""Pipeline and stage."""


class LetterAmount(NamedTuple):
    """How much there is of letters."""

    letters: int = 0
    messages: int = 0
    bytes: int = 0
    """What they take on the disk, roughly: more than their bodies have."""

    def plus(self, other: LetterAmount) -> LetterAmount:
        """Return both together."""
        return LetterAmount(
            self.letters + other.letters,
            self.messages + other.messages,
            self.bytes + other.bytes,
        )


NO_LETTERS = LetterAmount()
LetterAmounts = dict[LetterPlace, LetterAmount]


def add(amounts: LetterAmounts, place: LetterPlace, amount: LetterAmount) -> None:
    """Add to what there is at a place."""
    amounts[place] = amounts.get(place, NO_LETTERS).plus(amount)


class LetterFigures:
    """How much there is of letters, known without a look at the disk."""

    def __init__(self, amounts: LetterAmounts) -> None:
        self._of: dict[str, dict[str, LetterAmount]] = {}
        for place, amount in amounts.items():
            self.add(place, amount)

    def add(self, place: LetterPlace, amount: LetterAmount) -> None:
        """Count what is there as well."""
        pipeline, stage = place
        of = self._of.setdefault(pipeline, {})
        of[stage] = of.get(stage, NO_LETTERS).plus(amount)

    def subtract(self, gone: LetterAmounts) -> None:
        """Count what is gone no more, or what there is: what is damaged may say more."""
        for (pipeline, stage), amount in gone.items():
            of = self._of.get(pipeline, {})
            had = of.pop(stage, NO_LETTERS)
            if had.letters > amount.letters:
                left = (max(0, one - other) for one, other in zip(had, amount, strict=True))
                of[stage] = LetterAmount(*left)
            if not of:
                self._of.pop(pipeline, None)

    def pipelines(self) -> list[str]:
        """Return the pipelines that have letters."""
        return [*self._of]

    def of(self, pipeline: str) -> Mapping[str, LetterAmount]:
        """Return how much there is of a pipeline, by stage."""
        return self._of.get(pipeline, {})


@dataclass(slots=True)
class NewLetter:
    """A letter that is put down."""

    letter: Letter
    body: bytes
    size: int
    """What it takes on the disk, roughly. Units: bytes."""
    frees: int
    """How much of the oldest of its pipeline goes for it, at least. Units: bytes."""
    signature: int
    """The same for all that failed alike."""
    id: int = 0

    @property
    def place(self) -> LetterPlace:
        """Its pipeline and stage."""
        return self.letter.pipeline, self.letter.stage

    @property
    def amount(self) -> LetterAmount:
        """How much it is."""
        return LetterAmount(1, self.letter.messages, self.size)


class LetterTry(NamedTuple):
    """What became of a letter that was tried again."""

    tries: int
    last_seen: float
    maybe_written: bool


class LetterRest(NamedTuple):
    """What is left of a letter that was tried again: the rest of it is done."""

    id: int
    tried: LetterTry
    messages: int
    body: bytes


class DroppedLetters(NamedTuple):
    """Letters that went to make room for later ones of their pipeline."""

    pipeline: str
    stage: str
    component: int | None
    letters: int
    messages: int


class LetterSignature(NamedTuple):
    """What failed alike, and how much of it there is. Times are seconds since 1970.

    They are of all that there were since there was none: also of letters that are gone.
    """

    pipeline: str
    stage: str
    component: int | None
    message: str
    failure: str
    letters: int
    messages: int
    bytes: int
    """What they take on the disk, roughly."""
    first_seen: float
    last_seen: float


class FoundLetter(NamedTuple):
    """A letter as it was read."""

    id: int
    letter: Letter
    bytes: int
    """Of its body."""


class WholeLetter(NamedTuple):
    """A letter with its body, as far as they are what was written."""

    found: FoundLetter | None
    """None: it is damaged."""
    body: bytes | None
    """None: it is damaged."""


class LetterSome(NamedTuple):
    """Those of some letters that are there, the oldest first."""

    letters: list[FoundLetter]
    damaged: list[int]
    """The ids of those that are not what was written: they can be deleted."""


class LetterPage(NamedTuple):
    """Some letters of a pipeline, the newest first."""

    letters: list[FoundLetter]
    damaged: list[int]
    """The ids of those that are not what was written: they can be deleted."""
    before: int
    """Where the next page begins: the id of the last one that was looked at."""
    is_truncated: bool
    """Whether there are more behind it."""
    total: int
    """How many there are, of those that were asked for."""
    bytes: int
    """What all of those take on the disk, roughly."""
