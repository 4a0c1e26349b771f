"""A large list of messages that begin alike, as most posts are: cut where the next one seems to begin.

It is a guess, and what is decoded proves it: if a slice between brackets of its own is a list, its messages
are those of the text, since there is one way to read JSON. At the first slice that is none, or has nowhere
to be cut, the text goes on in the way of any other (`cutting.py`), which takes three times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import NotJson
from headrace.compiler.largejson.cutting import SLICE
from headrace.compiler.largejson.growing import Decode
from headrace.compiler.largejson.longnumbers import JsonBytes

_BLANKS = b" \t\r\n"
_FIRST = re.compile(rb'[ \t\r\n]*+\[[ \t\r\n]*+(\{[ \t\r\n]*+"[^"\\]*+"[ \t\r\n]*+:)')
_LONGEST_BEGINNING = 1024


class Slice(NamedTuple):
    """Some messages, at least one."""

    messages: list[JsonValue]
    containers: int
    """How many lists and objects there are in them, or a few more."""
    stop: int
    """Where the comma behind them is, or the end of the text if they are the last."""


def slices(text: JsonBytes, decode: Decode) -> Iterator[Slice]:
    """Yield the messages of a list, from its first one on, as long as they begin alike.

    ``decode`` refuses what nests too deep.
    """
    first = _FIRST.match(text, 0, _LONGEST_BEGINNING)
    if first is None:
        return
    beginning, start, size = first[1], first.start(1), len(text)
    while start < size:
        next_start = stop = size
        if size - start > SLICE:
            next_start = text.rfind(beginning, start + 1, start + SLICE)
            items = bytes(text[start:next_start]).rstrip(_BLANKS) if next_start > 0 else b""
            if not items.endswith(b","):
                return
            stop = start + len(items) - 1
        slice = b"[%b%b" % (bytes(text[start:stop]), b"]" if stop < size else b"")
        try:
            messages = decode(slice)
        except NotJson:
            return
        yield Slice(messages, slice.count(b"[") + slice.count(b"{"), stop)
        start = next_start
