"""Documents as text: JSON, or YAML that every loader reads the same, in the order they are given.

In YAML nothing is left to a loader's rules: what might be taken for something else than a string
(``yes``, ``null``, ``1.0``, ``12:30``, ``2026-03-01``) stands in quotes, a number with an exponent has
a point and a sign, as YAML 1.1 wants it, and there are no anchors, tags or folded lines. A text of
several lines is a literal block, where that keeps every character.

Source: https://yaml.org/spec/1.2.2/ (7.3 flow scalars, 8.1 block scalars), https://yaml.org/type/ (1.1)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any

from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import text as scalar_text
from headrace.compiler.text.composing import DEPTH, VALUES
from headrace.compiler.text.decoding import LARGEST, Format

_STEP = "  "
_LONGEST_KEY = 1000
"""Characters of a key that stands before its colon; YAML takes 1,024 there."""

# Words that some loader takes for something else; all others that begin with a letter are strings.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_PLAIN = re.compile(r"[A-Za-z_](?:[\w./${}>*+@-]|:(?=[\w/.${*])| (?=\w))*+", re.ASCII)
# What people write without quotes in the midst of a line: durations, words such as $has, and the letters
# that are a truth value in the text of YAML 1.1 and to none of its loaders.
_PLAIN_IN_FLOW = re.compile(r"(?:\d+(?:ms|us|[dhms]))+|\$[a-z]+|[nyNY]", re.ASCII)
# What ends a text without quotes inside { } and [ ].
_IN_BRACKETS = frozenset("{}[],")
# What no document may hold unescaped, and what some loader takes for the end of a line.
_UNWRITTEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_NOT_IN_BLOCKS = re.compile(f"[{_UNWRITTEN}]")
_NOT_IN_QUOTES = re.compile(f"[{_UNWRITTEN}\t\n]")
_TO_ESCAPE = re.compile(rf'[{_UNWRITTEN}\t\n\\"]')
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


class Unwritable(HeadraceError):
    """A document that no document may be like: it could not be read again."""


def instead_of(written: str, word: str, format: Format) -> str | None:
    """Return a word as it is spelled in the place of what is ``written``: in the quotes that this has.

    None where that is not simple: in the place of what has an anchor, and of a word with characters that
    do not print.
    """
    if written.startswith("&") or not word.isprintable():
        return None
    if written.startswith("'"):
        return "'" + word.replace("'", "''") + "'"
    is_plain = format == "yaml" and not written.startswith('"') and _IN_BRACKETS.isdisjoint(word)
    return _quoted(word) if is_plain else encode_basestring(word)


def write(document: Any, format: Format) -> str:
    """Return a document as text that ends in one line break; reading it gives the same document.

    Raises:
        Unwritable: no document may be like this: it could not be read again.
    """
    text = f"{_WRITERS[format](document, '')}\n"
    if len(text.encode()) > LARGEST:
        raise Unwritable(f"it is larger than the {LARGEST // 2**20} MiB that a document may have")
    if len(text) > 2 * VALUES and _count(document) > VALUES:  # each of them takes two characters
        raise Unwritable(f"it has more than the {VALUES:,} values that a document may have")
    return text


def write_flow(value: Any, format: Format) -> str:
    """Return a value on one line, as people write one inside another: ``{ temp: 20, flags: [hot] }``."""
    if isinstance(value, list):
        return f"[{', '.join(write_flow(each, format) for each in value)}]"
    if isinstance(value, dict):
        members = (
            f"{_flow_text(key, format)}: {write_flow(each, format)}" for key, each in value.items()
        )
        return f"{{ {', '.join(members)} }}" if value else "{}"
    if isinstance(value, str):
        return _flow_text(value, format)
    return scalar_text(value) if format == "json" else _yaml_number(value)


def _flow_text(text: str, format: Format) -> str:
    if format == "json":
        return encode_basestring(text)
    if _PLAIN_IN_FLOW.fullmatch(text):
        return text
    written = _quoted(text)
    return f"'{text}'" if written == text and not _IN_BRACKETS.isdisjoint(text) else written


def _count(value: Any) -> int:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return 1
    return 1 + sum(map(_count, value))


def _is_alone(value: Any, margin: str) -> bool:
    """Return whether a value is written without others inside; what nests too deep is not at all."""
    if not isinstance(value, dict | list):
        return True
    if len(margin) >= DEPTH * len(_STEP):
        raise Unwritable(f"lists and objects in it are nested more than {DEPTH} deep")
    return not value


def _json(value: Any, margin: str) -> str:
    if _is_alone(value, margin):
        return encode_basestring(value) if isinstance(value, str) else scalar_text(value)
    inner = margin + _STEP
    if isinstance(value, list):
        members = [_json(each, inner) for each in value]
    else:
        members = [f"{encode_basestring(key)}: {_json(value[key], inner)}" for key in value]
    first, last = "[]" if isinstance(value, list) else "{}"
    return f"{first}\n{inner}" + f",\n{inner}".join(members) + f"\n{margin}{last}"


def _yaml(value: Any, margin: str) -> str:
    """Return a value that begins where something on its line has indented it to ``margin``."""
    if _is_alone(value, margin):
        return _yaml_scalar(value, margin)
    if isinstance(value, list):
        members = [f"- {_yaml(each, margin + _STEP)}" for each in value]
    else:
        members = [_member(key, value[key], margin) for key in value]
    return f"\n{margin}".join(members)


def _member(key: str, value: Any, margin: str) -> str:
    inner, name = margin + _STEP, _quoted(key)
    head = f"{name}:" if len(name) <= _LONGEST_KEY else f"? {name}\n{margin}:"
    is_below = isinstance(value, dict | list) and value
    return f"{head}\n{inner}{_yaml(value, inner)}" if is_below else f"{head} {_yaml(value, inner)}"


def _yaml_scalar(value: Any, margin: str) -> str:
    if isinstance(value, str):
        return _block(value, margin) if _is_block(value) else _quoted(value)
    return _yaml_number(value)


def _yaml_number(value: Any) -> str:
    """Return what is neither a text nor has others inside."""
    written = scalar_text(value)
    digits, has_exponent, exponent = written.partition("e")
    if not isinstance(value, float) or not has_exponent:
        return written
    # As YAML 1.1 knows it too: ``1.0e+16``.
    point = "" if "." in digits else ".0"
    sign = "" if exponent.startswith("-") else "+"
    return f"{digits}{point}e{sign}{exponent}"


def _quoted(text: str) -> str:
    """Return a string on one line, without quotes where every loader takes it for a string."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if not _NOT_IN_QUOTES.search(text):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _TO_ESCAPE.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _is_block(text: str) -> bool:
    """Return whether a literal block keeps every character of a text."""
    return (
        "\n" in text
        and not text.startswith("\n")
        and not text.isspace()
        and not _NOT_IN_BLOCKS.search(text)
        and not _BLANK_LINE.search(text)
    )


def _block(text: str, margin: str) -> str:
    stripped = text.rstrip("\n")
    indentation = str(len(_STEP)) if text[0] in " \t" else ""
    chomping = {0: "-", 1: ""}.get(len(text) - len(stripped), "+")
    lines = (f"\n{margin}{line}" if line else "\n" for line in text.removesuffix("\n").split("\n"))
    return f"|{indentation}{chomping}{''.join(lines)}"


_WRITERS: Mapping[Format, Callable[[Any, str], str]] = {"json": _json, "yaml": _yaml}
