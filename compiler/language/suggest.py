"""What somebody who wrote a word that is not allowed may have meant."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 80
"""Longer words are not typing errors, and comparing them would take its time."""


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that ``word`` plausibly is a typing error of.

    One slip (a letter wrong, missing, too many, or two swapped) per three letters passes. Case,
    ``-`` and ``_`` do not count: ``numeric`` finds ``Numeric``. Of equally near words the
    alphabetically first one is taken.
    """
    plain = _plain(word)
    others = sorted(other for other in allowed if other != word)
    alike = [other for other in others if _plain(other) == plain]
    if alike or len(plain) > _LONGEST:
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
    return min(near)[1] if near else None


def _plain(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")
