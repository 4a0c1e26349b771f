"""What somebody who wrote a word that is not allowed may have meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from types import MappingProxyType

Others = Mapping[str, str]
"""What allowed words are called elsewhere: the other word, and ours."""

NO_OTHERS: Others = MappingProxyType({})

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


def others(named: Mapping[str, str]) -> Others:
    """Return what allowed words are called elsewhere, from those words with their others in one text.

    ``{"avg": "average mean"}`` is written where the word itself is declared; here it is turned around.
    """
    return {_plain(other): known for known, text in named.items() for other in text.split()}


def nearest(word: str, allowed: Iterable[str], elsewhere: Others = NO_OTHERS) -> str | None:
    """Return the allowed word that is plausibly meant by ``word``.

    What it is called ``elsewhere`` comes before typing errors: ``mean`` is ``avg``, and no slip of
    ``median``. One slip (a letter wrong, missing, too many, or two swapped) per three letters passes. Case,
    ``-`` and ``_`` do not count: ``numeric`` finds ``Numeric``. Of equally near words the
    alphabetically first one is taken. Failing that, a word that was not written to its end finds
    the only one that begins with it.
    """
    plain = _plain(word)
    known = sorted(each for each in allowed if each != word)
    alike = [each for each in known if _plain(each) == plain]
    if not alike and (ours := elsewhere.get(plain)) in known:
        return ours
    if alike or len(plain) > _LONGEST or len(known) > _MOST:
        return next(iter(alike), None)
    # Loading it takes longer than checking a config that has nothing wrong.
    from rapidfuzz.distance import OSA

    near = [
        (slips, each)
        for each in known
        if (slips := OSA.distance(plain, _plain(each))) <= max(len(plain), len(each)) // 3
    ]
    if near:
        return min(near)[1]
    begun = [each for each in known if _plain(each).startswith(plain)]
    return begun[0] if len(begun) == 1 and len(plain) >= _BEGINNING else None


def did_you_mean(word: str, allowed: Iterable[str], elsewhere: Others = NO_OTHERS) -> str | None:
    """Return the question to put to whoever wrote ``word``: ``did you mean 'topic'?``."""
    meant = nearest(word, allowed, elsewhere)
    return None if meant is None else f"did you mean '{meant}'?"


def meant_or_there(word: str, there: Collection[str]) -> str:
    """Return what to say beside a name that nothing has: which may be meant, or which there are."""
    return did_you_mean(word, there) or f"there is {one_of(there) if there else 'none'}"


def _plain(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")
