"""Numbers that msgspec takes long for, and how to see that a text has some before it is decoded.

A double near the ends of the range (``1e300``, ``5e-324``) takes it 8 to 20 µs, so up to 3 µs a byte;
Python's own `float` takes half a microsecond. The extension looks at a text in a fiftieth of the time that
decoding takes, Python in a third, for the letters e of a text are many: without the extension only what is
long is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

UNSEEN = 4 * 1024
"""Bytes of a text that is decoded without a look at its numbers, if it comes alone: 5 ms of the worst."""
UNSEEN_BY_PYTHON = 16 * 1024
"""Bytes of texts that are never looked at where the extension is missing: 22 ms of the worst, and 170 on a
busy machine. To look at them in Python cost posts of a hundred messages 8 per cent.
"""

_ENDS = rb"(?=[\s,\]}]|\Z)"


def has_slow_numbers(text: bytes | bytearray | memoryview) -> bool:
    """Return whether a text may have numbers that msgspec takes long for.

    Those are near the ends of the range of doubles, so with exponents of three digits and more, or with a
    shorter one behind twenty digits and more, which takes up to 100 ns a byte. Without an exponent it
    is 30. An identifier that looks like one (``3e123``, as every third UUID has it) goes on with something
    that no number ends with.
    """
    return finder()(bytes(text))


@cache
def finder() -> Callable[[bytes], bool]:
    """Return what does the work of `has_slow_numbers`, for whoever asks of many texts.

    The extension is imported when it is first asked for (2 ms), so that nothing starts later for it.
    """
    try:
        from rhai import has_slow_numbers as finds
    except ImportError:
        return python_finder()
    return finds


def python_finder() -> Callable[[bytes], bool]:
    """Return the one that needs no extension and finds nothing in at most `UNSEEN_BY_PYTHON` bytes."""
    # For each letter two patterns that begin with it: that is searched for faster than one of two letters.
    # The first is a number with an exponent, the second one that is slow. Most texts do not have the first.
    by_letter = (
        (
            b"e",
            re.compile(rb"e(?<=[0-9]e)[+-]?[0-9]++" + _ENDS),
            re.compile(rb"e(?<=[0-9]e)(?:[+-]?[0-9]{3,}+|(?<=[0-9.]{20}e)[+-]?[0-9]++)" + _ENDS),
        ),
        (
            b"E",
            re.compile(rb"E(?<=[0-9]E)[+-]?[0-9]++" + _ENDS),
            re.compile(rb"E(?<=[0-9]E)(?:[+-]?[0-9]{3,}+|(?<=[0-9.]{20}E)[+-]?[0-9]++)" + _ENDS),
        ),
    )

    def finds(text: bytes) -> bool:
        return len(text) > UNSEEN_BY_PYTHON and any(
            letter in text and (first := exponent.search(text)) and slow.search(text, first.start())
            for letter, exponent, slow in by_letter
        )

    return finds
