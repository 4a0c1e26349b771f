"""What somebody who wrote a word that is not allowed may have meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

_LONGEST = 80
"""Longer words are not typing errors, and comparing them would take its time."""
_BEGINNING = 3
"""Letters that are enough to tell which word was begun."""
_MOST = 1000
"""Among more words nobody looks for a similar one."""
_LISTED = 50
"""Words that are listed where one of them is wanted."""


def one_of(words: Collection[str]) -> str:
    """Return what one of these words would be: ``one of oven, press``."""
    rest = len(words) - _LISTED
    return (
        "one of " + ", ".join(islice(words, _LISTED)) + (f" and {rest:,} more" if rest > 0 else "")
    )


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that ``word`` plausibly is a typing error of.

    One slip (a letter wrong, missing, too many, or two swapped) per three letters passes. Case,
    ``-`` and ``_`` do not count: ``numeric`` finds ``Numeric``. Of equally near words the
    alphabetically first one is taken. Failing that, a word that was not written to its end finds
    the only one that begins with it.
    """
    plain = _plain(word)
    others = sorted(other for other in allowed if other != word)
    alike = [other for other in others if _plain(other) == plain]
    if alike or len(plain) > _LONGEST or len(others) > _MOST:
        return next(iter(alike), None)
    return _misspelt(plain, others)


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """Return the question to put to whoever wrote ``word``: ``did you mean 'topic'?``."""
    meant = nearest(word, allowed)
    return None if meant is None else f"did you mean '{meant}'?"


def _misspelt(plain: str, others: list[str]) -> str | None:
    # Loading it takes longer than checking a config that has nothing wrong.
    from rapidfuzz.distance import OSA

    near = [
        (slips, other)
        for other in others
        if (slips := OSA.distance(plain, _plain(other))) <= max(len(plain), len(other)) // 3
    ]
    return min(near)[1] if near else _cut_short(plain, others)


def _cut_short(plain: str, others: list[str]) -> str | None:
    """Return the one word that begins like this one: ``greater`` finds ``greater_than``."""
    begun = [each for each in others if _plain(each).startswith(plain)]
    return begun[0] if len(begun) == 1 and len(plain) >= _BEGINNING else None


def _plain(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")
