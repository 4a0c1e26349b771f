"""JSON text read strictly, with the place of everything in it.

The standard library's reader forgets where values stood, takes NaN, ``1e400``, repeated keys and
halves of surrogate pairs, and ends with Python's stack; so the grammar is spelled out here, and
read step by step without recursion.

Source: https://www.rfc-editor.org/rfc/rfc8259
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.compiler.text import jsonfaults
from headrace.compiler.text.composing import Building
from headrace.compiler.text.scalars import characters, integer, real

# Every pattern takes the blanks after its token along, so reading always stands on the next one.
# All are possessive: a failed match must not try again from every character before it.
_BLANKS = r"[ \t\n\r]*+"
_STRING = f'{jsonfaults.STRING_SO_FAR}"'
_DIGITS = r"-?(?:0|[1-9][0-9]*+)"
_START = re.compile(_BLANKS)
_KEY = re.compile(rf"({_STRING}){_BLANKS}:{_BLANKS}")
_SCALAR = re.compile(
    rf"(?:(?P<string>{_STRING})"
    rf"|(?P<integer>{_DIGITS})(?![\w.+-])"
    rf"|(?P<real>{_DIGITS}(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![\w.+-])"
    rf"|(?P<word>true|false|null)(?!\w)){_BLANKS}"
)
_OPENING = re.compile(rf"([\[{{]){_BLANKS}")
_LIST_END = re.compile(rf"\]{_BLANKS}")
_OBJECT_END = re.compile(rf"\}}{_BLANKS}")
_COMMA = re.compile(rf",{_BLANKS}")


def read_json(text: str, building: Building) -> None:
    """Tell ``building`` what the text contains.

    Raises: `MalformedDocument` where the text is not JSON.
    """
    start = _START.match(text)
    at = _value(text, start.end() if start else 0, building)
    while building.is_open:
        at = _member(text, at, building)
    if at < len(text):
        raise jsonfaults.after_the_end(at)


def _member(text: str, at: int, building: Building) -> int:
    """Read one more member of what is open, or its end."""
    closing = _OBJECT_END if building.in_object else _LIST_END
    end = closing.match(text, at)
    if end is None and not building.is_empty:
        at, end = _comma(text, at, closing, building)
    if end:
        building.end()
        return end.end()
    if building.in_object:
        at = _key(text, at, building)
    return _value(text, at, building)


def _comma(
    text: str, at: int, closing: re.Pattern[str], building: Building
) -> tuple[int, re.Match[str] | None]:
    """Read a comma, and the end if there is nothing between the two, as there has to be."""
    comma = _COMMA.match(text, at)
    if comma is None:
        raise jsonfaults.no_comma(text, at, building)
    if end := closing.match(text, comma.end()):
        building.overlook(jsonfaults.comma_too_many(text[comma.end()]), at)
    return comma.end(), end


def _key(text: str, at: int, building: Building) -> int:
    key = _KEY.match(text, at)
    if key is None:
        raise jsonfaults.no_key(text, at, building)
    name = _string(key[1])
    if not isinstance(name, str):
        building.refuse(name, at)
        name = key[1]
    building.key(name, at)
    return key.end()


def _value(text: str, at: int, building: Building) -> int:
    """Read a scalar, or the beginning of a list or an object."""
    if scalar := _SCALAR.match(text, at):
        kind = scalar.lastgroup or ""
        building.scalar(_MEANINGS[kind](scalar[kind]), at)
        return scalar.end()
    opening = _OPENING.match(text, at)
    if opening is None:
        raise jsonfaults.no_value(text, at, building)
    building.begin([] if opening[1] == "[" else {}, at)
    return opening.end()


def _string(token: str) -> Any:
    return characters(json.loads(token)) if "\\" in token else token[1:-1]


_MEANINGS: Mapping[str, Callable[[str], Any]] = {
    "string": _string,
    "integer": integer,
    "real": real,
    "word": {"true": True, "false": False, "null": None}.__getitem__,
}
