"""Why a text is not JSON, said so that it can be mended: each function looks at one expectation.

Apart from keys nothing of the text is repeated, as the same reader reads files of secrets.
"""

from __future__ import annotations

import re

from headrace.compiler.text.composing import Building, MalformedDocument
from headrace.compiler.text.diagnostics import Codes, Fault, printable
from headrace.compiler.text.suggest import did_you_mean

CODES: Codes = {
    "malformed-json": "The document is not JSON.",
}

# Possessive: a failed match must not try again from every character before it.
STRING_SO_FAR = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
"""A string without its closing quote, as far as it is right."""

_STRING = re.compile(STRING_SO_FAR)
_WORD = re.compile(r"""[^\s,:\[\]{}"']{1,40}""")


def no_value(text: str, at: int, building: Building) -> MalformedDocument:
    """Something else stands where a value has to be."""
    return _stray(text, at, building) or _word(text, at, "a value")


def no_key(text: str, at: int, building: Building) -> MalformedDocument:
    """Something else stands where a key and its colon have to be."""
    if fault := _stray(text, at, building):
        return fault
    if key := _STRING.match(text, at):
        return _malformed("no ':' follows the key", key.end() + 1, expected="':'")
    if word := _WORD.match(text, at):
        return _malformed(f"the key {_quoted(word[0])} needs double quotes", at)
    return _word(text, at, "a key")


def no_comma(text: str, at: int, building: Building) -> MalformedDocument:
    """Something else stands where a comma or the end of a list or an object has to be."""
    if fault := _stray(text, at, building):
        return fault
    what, closing = ("object", "}") if building.in_object else ("list", "]")
    expected = f"',' or '{closing}'"
    if text[at] in "]}:":
        line, _ = building.lines.at(building.innermost.offset)
        inside = f"in the {what} that starts on line {line}"
        return _malformed(f"'{text[at]}' cannot stand here {inside}", at, expected=expected)
    return _malformed("a comma is missing before this", at, expected=expected)


def comma_too_many(closing: str) -> Fault:
    """A comma stands before the end of a list or an object."""
    return Fault("malformed-json", f"a comma before '{closing}' is not JSON: remove it")


def after_the_end(at: int) -> MalformedDocument:
    """Something follows the value that is the whole document."""
    return _malformed("text after the end of the document", at)


def _stray(text: str, at: int, building: Building) -> MalformedDocument | None:
    """What is wrong wherever it stands: the end, a comment, a single quote, a broken string."""
    if at == len(text):
        return _cut_short(building)
    if text.startswith(("#", "//", "/*"), at):
        return _malformed("JSON has no comments: remove it", at)
    if text.startswith("'", at):
        return _malformed("JSON strings take double quotes", at, found="'", expected='"')
    string = _STRING.match(text, at)
    if string is None or text.startswith('"', string.end()):
        return None
    return _broken_string(text, at, string.end())


def _cut_short(building: Building) -> MalformedDocument:
    what, closing = ("object", "}") if building.in_object else ("list", "]")
    message = f"the {what} that starts here does not end"
    return _malformed(message, building.innermost.offset, expected=f"'{closing}'")


def _broken_string(text: str, at: int, end: int) -> MalformedDocument:
    if end == len(text):
        return _malformed("the string that starts here does not end", at, expected="'\"'")
    if text[end] == "\\":
        return _malformed(f"{_quoted(text[end : end + 2])} is not a JSON escape", end)
    if text[end] == "\t":
        return _malformed(r"a string cannot contain a tab: write \t", end)
    return _malformed(
        r"the string that starts here has no end on its line: close it, or write \n", at
    )


def _word(text: str, at: int, expected: str) -> MalformedDocument:
    word = _WORD.match(text, at)
    if word is None:
        message = f"{_quoted(text[at])} cannot stand here"
        return _malformed(message, at, found=printable(text[at]), expected=expected)
    if re.match(r"[-+.\d]|nan|inf", word[0], re.ASCII | re.IGNORECASE):
        expected = "a number such as 42, -0.5 or 1e6"
        return _malformed("this is not a JSON number", at, expected=expected)
    return _malformed(
        "this word is not JSON: a string takes double quotes",
        at,
        suggestion=did_you_mean(word[0], ("true", "false", "null")),
    )


def _quoted(word: str) -> str:
    return f"'{printable(word)}'"


def _malformed(
    message: str,
    at: int,
    *,
    found: str | None = None,
    expected: str | None = None,
    suggestion: str | None = None,
) -> MalformedDocument:
    return MalformedDocument(Fault("malformed-json", message, found, expected, suggestion), at)
