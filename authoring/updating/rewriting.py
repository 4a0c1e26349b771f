"""Values of a document in the place of others: everything else stays, comments included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Path
from headrace.compiler.text.documents import Document, Unreadable, read
from headrace.compiler.text.positions import LineIndex
from headrace.compiler.text.writing import write_flow

_STEP = "  "
_WIDTH = 100
"""Columns up to which what may stand on one line does."""


class NotRewritten(Exception):
    """A text cannot be changed so that it says what it should; its text says why."""


def rewritten(document: Document, values: Mapping[Path, JsonValue]) -> str:
    """Return the text of a document with other values at some paths, none of them inside another.

    Raises:
        NotRewritten: then it would say something else besides, as where a name for a value is at stake.
    """
    text = document.text
    places = [(*_bounds(document, path), path) for path in values]
    for start, end, path in sorted(places, reverse=True):
        text = _replaced(document, text, start, end, path, values[path])
    _check(document, values, text)
    return text


def _bounds(document: Document, path: Path) -> tuple[int, int]:
    """Return where a value begins and ends."""
    start, end = document.extent(path)
    return start, start + len(_without_comments(document.text[start:end]))


def _without_comments(written: str) -> str:
    """Return what is written without the blanks and comments after it: they are what follows."""
    kept = written.rstrip()
    while "\n" in kept and kept.rpartition("\n")[2].lstrip().startswith("#"):
        kept = kept.rpartition("\n")[0].rstrip()
    return kept


def _replaced(
    document: Document, text: str, start: int, end: int, path: Path, value: JsonValue
) -> str:
    is_inside = _is_flow(document, path[:-1])
    flow = write_flow(value, document.format)
    position = document.position(path, on_key=True)
    assert position is not None
    line, column = position
    if is_inside:
        margin = _margin(text, LineIndex(text).offset(line, 1))
        written = _on_lines(value, document, margin) if len(flow) + column > _WIDTH else flow
        return text[:start] + _ended(written, text) + text[end:]
    head = text[:start].rstrip()
    was_flow = text.startswith(("{", "["), start) and len(flow) + column <= _WIDTH
    if was_flow or not isinstance(value, dict | list) or not value:
        return (f"{head} " if head.endswith(":") else text[:start]) + flow + text[end:]
    below = "".join(f"\n{each}" for each in _block(value, " " * (column - 1) + _STEP))
    return head + _ended(below, text) + text[end:]


def _is_flow(document: Document, path: Path) -> bool:
    """Return whether what is at a path has brackets around it, so that all in it has."""
    return document.text.startswith(("{", "["), document.extent(path)[0])


def _margin(text: str, start: int) -> str:
    """Return the blanks at the start of a line."""
    line = text[start:].split("\n", 1)[0]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _on_lines(value: JsonValue, document: Document, margin: str) -> str:
    """Return a value inside others in brackets with a line for each member."""
    if not isinstance(value, dict | list):
        return write_flow(value, document.format)
    if isinstance(value, list):
        members = [write_flow(each, document.format) for each in value]
    else:
        members = [write_flow({key: each}, document.format)[2:-2] for key, each in value.items()]
    first, last = "[]" if isinstance(value, list) else "{}"
    inner = f"\n{margin}{_STEP}"
    return f"{first}{inner}" + f",{inner}".join(members) + f"\n{margin}{last}"


def _block(value: JsonValue, pad: str) -> Iterator[str]:
    """Yield the lines of a timeline in YAML: one for each moment, and for each message of a long batch."""
    entries = [("", value)] if isinstance(value, dict) else [("- ", each) for each in value]
    for dash, entry in entries:
        for key, what in entry.items():
            name = write_flow(key, "yaml")
            line = f"{pad}{dash}{name}: {write_flow(what, 'yaml')}"
            if len(line) <= _WIDTH or not isinstance(what, list) or not what:
                yield line
                continue
            yield f"{pad}{dash}{name}:"
            inner = pad + _STEP * (2 if dash else 1)
            yield from (f"{inner}- {write_flow(each, 'yaml')}" for each in what)


def _ended(written: str, text: str) -> str:
    """Return what is written with the line breaks that a text has."""
    return written.replace("\n", "\r\n") if "\r\n" in text else written


def _check(document: Document, values: Mapping[Path, JsonValue], text: str) -> None:
    """Make sure that a text says what it should and nothing else."""
    wanted = document.value
    for path, value in values.items():
        wanted = _with(wanted, path, value)
    try:
        said = read(text, document.file, document.format).value
    except Unreadable as cause:
        raise NotRewritten(str(cause)) from cause
    if said != wanted:
        raise NotRewritten("something else would change too, as where a value has an anchor")


def _with(value: Any, path: Path, new: JsonValue) -> Any:
    """Return a value with another one at a path inside it; the value itself stays."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    changed = value.copy()
    changed[step] = _with(value[step], rest, new)
    return changed
