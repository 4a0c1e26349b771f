"""Which of the things that a malformed text may mean was meant: the one that is the most of a config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, Meaning

Judge = Callable[[Document], tuple[object, Iterable[Diagnostic]]]
"""What loads a document: it returns what that describes, and what is wrong with it."""


def likeliest(meanings: Sequence[Meaning], judge: Judge) -> Meaning | None:
    """Return the meaning that was most likely meant; None if that cannot be told.

    It is the one whose keys are best known where they stand, then the one with the fewest errors. Of
    those that are equal in this it is the nearest one, and if that is none of them, nobody can tell.
    """
    measured = [(_faults(each, judge), each) for each in meanings]
    fewest = min((faults for faults, _ in measured), default=None)
    best = [each for faults, each in measured if faults == fewest]
    return best[0] if len(best) == 1 else next((each for each in best if each.is_nearest), None)


def _faults(meaning: Meaning, judge: Judge) -> tuple[int, int]:
    """Return how much of it is out of place, and how many errors it has.

    A meaning is no better for having its faults where nobody looks, so each value that nobody looked
    at counts as if it were wrong.
    """
    errors = [
        one
        for one in (*meaning.diagnostics, *judge(meaning.document)[1])
        if one.severity is Severity.ERROR and one.file == meaning.document.file
    ]
    missing = sum(one.code in ("missing-key", "duplicate-key") for one in errors)
    return meaning.document.unseen(errors) + missing, len(errors)
