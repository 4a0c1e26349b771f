"""Numbers as they were written: for columns that want ``1.10`` and thirty digits, not a double.

A pipeline that feeds such a column decodes its numbers with `exact`; everything else decodes plainly
and knows nothing of this. What comes of it is a float in either case, so whatever counts, compares
or calculates works with both; a type that is asked for by its exact class has two (see `FLOATS`).
"""

from __future__ import annotations

import math

_SHORT = 16
"""Characters of at most 15 digits and a point: every such number is the shortest of its double."""


class Written(float):
    """A double that remembers how it was written in JSON.

    It compares, hashes and calculates as the double does, and what is calculated is a plain one. As
    JSON it is written as it was; as text (a cast, a key) the double is.
    """

    __slots__ = ("text",)

    text: str

    def __init__(self, text: str) -> None:
        self.text = text


FLOATS = frozenset({float, Written})
"""The classes of a JSON number with a point or an exponent."""
NUMBERS = frozenset({int, float, Written})
"""The classes of a JSON number. A boolean is none."""


def exact(text: str) -> float:
    """Return the double that a JSON number with a point or an exponent stands for.

    It is a plain float where the shortest text of it is certain to have the digits and the scale of
    ``text``, else a `Written`: for ``1.10``, ``1e3`` and whatever has more than 16 characters.

    Raises:
        ValueError: it is beyond the range of doubles.
    """
    if (
        len(text) <= _SHORT
        and (text[-1] != "0" or text[-2] == ".")
        and "e" not in text
        and "E" not in text
    ):
        return float(text)
    number = Written(text)
    if not math.isfinite(number):
        raise ValueError("Number out of range")
    return number
