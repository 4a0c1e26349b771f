"""A large list of messages that begin alike, as most posts are: cut where the next one seems to begin.

It is a guess, and what is decoded proves it: if every slice between brackets of its own is a list, the text
is the list of all their items, since there is one way to read JSON. The first slice that is none, or has
nowhere to be cut, ends it, and the text goes the way of any other (`cutting.py`), which takes three times
as long. So who posts decides about a third of that, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import NotJson
from headrace.compiler.largejson.cutting import SLICE
from headrace.compiler.largejson.longnumbers import JsonBytes

_BLANKS = b" \t\r\n"
_FIRST = re.compile(rb'[ \t\r\n]*+\[[ \t\r\n]*+(\{[ \t\r\n]*+"[^"\\]*+"[ \t\r\n]*+:)')
_LONGEST_BEGINNING = 1024

Decode = Callable[[JsonBytes], JsonValue]


class NotAlike(Exception):
    """The text is no list of messages that begin alike, or something is wrong with it."""


class Slice(NamedTuple):
    """Some messages, at least one, and how many lists and objects there are in them, or a few more."""

    messages: list[JsonValue]
    containers: int


def slices(text: JsonBytes, decode: Decode) -> Iterator[Slice]:
    """Yield the messages of a list: all that ``decode`` would return of it.

    ``decode`` refuses what nests too deep.

    Raises:
        NotAlike: at once, or later: then what was yielded is to be forgotten.
    """
    first = _FIRST.match(text, 0, _LONGEST_BEGINNING)
    if first is None:
        raise NotAlike
    return _slices(text, first[1], first.start(1), decode)


def _slices(text: JsonBytes, beginning: bytes, start: int, decode: Decode) -> Iterator[Slice]:
    while len(text) - start > SLICE:
        stop = text.rfind(beginning, start + 1, start + SLICE)
        items = bytes(text[start:stop]).rstrip(_BLANKS) if stop > 0 else b""
        if not items.endswith(b","):
            raise NotAlike
        yield _slice(b"[%b]" % items[:-1], decode)
        start = stop
    yield _slice(b"[%b" % bytes(text[start:]), decode)


def _slice(text: bytes, decode: Decode) -> Slice:
    try:
        return Slice(decode(text), text.count(b"[") + text.count(b"{"))
    except NotJson:
        raise NotAlike from None
