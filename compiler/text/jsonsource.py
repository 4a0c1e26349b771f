"""JSON text read strictly, with the place of everything in it.

The standard library's reader forgets where values stood, takes NaN, ``1e400``, repeated keys and
halves of surrogate pairs, and ends with Python's stack; so the grammar is spelled out here, and
read step by step without recursion.

Why a text is not JSON is said so that it can be mended. Apart from keys nothing of the text is repeated,
as the same reader reads files of secrets.

Source: https://www.rfc-editor.org/rfc/rfc8259
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.compiler.text.composing import Building, MalformedDocument
from headrace.compiler.text.diagnostics import Codes, Fault, printable
from headrace.compiler.text.positions import span
from headrace.compiler.text.scalars import characters, integer, real
from headrace.compiler.text.suggest import did_you_mean

CODES: Codes = {
    "malformed-json": "The document is not JSON.",
}

# Every pattern takes the blanks after its token along, so reading always stands on the next one.
# All are possessive: a failed match must not try again from every character before it.
_BLANKS = r"[ \t\n\r]*+"
# A string without its closing quote, as far as it is right.
_STRING_SO_FAR = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
_STRING = f'{_STRING_SO_FAR}"'
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

_BEGUN_STRING = re.compile(_STRING_SO_FAR)
_WORD = re.compile(r"""[^\s,:\[\]{}"']{1,40}""")


def read_json(text: str, building: Building) -> None:
    """Tell ``building`` what the text contains.

    Raises: `MalformedDocument` where the text is not JSON.
    """
    start = _START.match(text)
    at = _value(text, start.end() if start else 0, building)
    while building.is_open:
        at = _member(text, at, building)
    if at < len(text):
        raise _malformed("text after the end of the document", at)


def _member(text: str, at: int, building: Building) -> int:
    """Read one more member of what is open, or its end."""
    closing = _OBJECT_END if building.in_object else _LIST_END
    end = closing.match(text, at)
    if end is None and not building.is_empty:
        comma = _COMMA.match(text, at)
        if comma is None:
            raise _no_comma(text, at, building)
        if end := closing.match(text, comma.end()):
            message = f"a comma before '{text[comma.end()]}' is not JSON: remove it"
            building.overlook(Fault("malformed-json", message), at)
        at = comma.end()
    if end:
        building.end(end.start() + 1)
        return end.end()
    return _value(text, _key(text, at, building) if building.in_object else at, building)


def _key(text: str, at: int, building: Building) -> int:
    key = _KEY.match(text, at)
    if key is None:
        raise _no_key(text, at, building)
    name, place = _string(key[1]), span(*key.span(1))
    if not isinstance(name, str):
        building.refuse(name, place)
        name = key[1]
    building.key(name, place)
    return key.end()


def _value(text: str, at: int, building: Building) -> int:
    """Read a scalar, or the beginning of a list or an object."""
    if scalar := _SCALAR.match(text, at):
        kind = scalar.lastgroup or ""
        building.scalar(_MEANINGS[kind](scalar[kind]), span(*scalar.span(kind)))
        return scalar.end()
    opening = _OPENING.match(text, at)
    if opening is None:
        raise _stray(text, at, building) or _wrong_word(text, at, "a value")
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


def _no_key(text: str, at: int, building: Building) -> MalformedDocument:
    """Something else stands where a key and its colon have to be."""
    if fault := _stray(text, at, building):
        return fault
    if key := _BEGUN_STRING.match(text, at):
        return _malformed("no ':' follows the key", key.end() + 1, expected="':'")
    if word := _WORD.match(text, at):
        return _malformed(f"the key '{printable(word[0])}' needs double quotes", at)
    return _wrong_word(text, at, "a key")


def _no_comma(text: str, at: int, building: Building) -> MalformedDocument:
    """Something else stands where a comma or the end of a list or an object has to be."""
    if fault := _stray(text, at, building):
        return fault
    what, closing = _ending(building)
    message = "a comma is missing before this"
    if text[at] in "]}:":
        line, _ = building.lines.at(building.innermost.offset)
        message = f"'{text[at]}' cannot stand here in the {what} that starts on line {line}"
    return _malformed(message, at, expected=f"',' or '{closing}'")


def _stray(text: str, at: int, building: Building) -> MalformedDocument | None:
    """What is wrong wherever it stands: the end, a comment, a single quote, a broken string."""
    if at == len(text):
        what, closing = _ending(building)
        message = f"the {what} that starts here does not end"
        return _malformed(message, building.innermost.offset, expected=f"'{closing}'")
    if text.startswith(("#", "//", "/*"), at):
        return _malformed("JSON has no comments: remove it", at)
    if text.startswith("'", at):
        return _malformed("JSON strings take double quotes", at, found="'", expected='"')
    string = _BEGUN_STRING.match(text, at)
    if string is None or text.startswith('"', string.end()):
        return None
    end = string.end()
    if end == len(text):
        return _malformed("the string that starts here does not end", at, expected="'\"'")
    if text[end] == "\\":
        return _malformed(f"'{printable(text[end : end + 2])}' is not a JSON escape", end)
    if text[end] == "\t":
        return _malformed(r"a string cannot contain a tab: write \t", end)
    return _malformed(
        r"the string that starts here has no end on its line: close it, or write \n", at
    )


def _ending(building: Building) -> tuple[str, str]:
    """Return what the innermost of what is open is called, and what ends it."""
    return ("object", "}") if building.in_object else ("list", "]")


def _wrong_word(text: str, at: int, expected: str) -> MalformedDocument:
    word = _WORD.match(text, at)
    if word is None:
        sign = printable(text[at])
        return _malformed(f"'{sign}' cannot stand here", at, found=sign, expected=expected)
    if re.match(r"[-+.\d]|nan|inf", word[0], re.ASCII | re.IGNORECASE):
        expected = "a number such as 42, -0.5 or 1e6"
        return _malformed("this is not a JSON number", at, expected=expected)
    return _malformed(
        "this word is not JSON: a string takes double quotes",
        at,
        suggestion=did_you_mean(word[0], ("true", "false", "null")),
    )


def _malformed(
    message: str,
    at: int,
    *,
    found: str | None = None,
    expected: str | None = None,
    suggestion: str | None = None,
) -> MalformedDocument:
    return MalformedDocument(Fault("malformed-json", message, found, expected, suggestion), at)
