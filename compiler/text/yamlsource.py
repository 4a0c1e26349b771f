"""YAML text read by the rules of YAML 1.2, with the place of everything in it.

libyaml finds the structure and tells it as events. What an unquoted word means is decided here, as
its own rules are those of YAML 1.1. Anchors and aliases are understood. Tags and merge keys
(``<<``) are refused: a config has no use for the former, and YAML 1.2 does not have the latter.

libyaml's own words for what is wrong describe its parser; those that people meet are said again here, with
the place that has to be changed, which for what does not end is where it starts.

Source: https://yaml.org/spec/1.2.2/ and https://pyyaml.org/wiki/PyYAMLDocumentation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from headrace.compiler.text.composing import Building, MalformedDocument
from headrace.compiler.text.diagnostics import Codes, Fault, printable
from headrace.compiler.text.mending import (
    Edits,
    in_quotes,
    is_in_brackets,
    reference_at,
    with_blanks_for_tabs,
    without_comma,
)
from headrace.compiler.text.positions import Span, bounds, span
from headrace.compiler.text.scalars import plain

CODES: Codes = {
    "key-not-text": "A YAML key is something else than a string.",
    "malformed-yaml": "The document is not YAML.",
    "merge-key": "A YAML merge key ('<<'), which YAML 1.2 does not have.",
    "several-documents": "The file contains more than one YAML document.",
    "tab": "A tab indents a line of YAML.",
    "tag": "A YAML tag ('!something'), which a config has no use for.",
}

_TAGGED = Fault(
    "tag",
    "a tag ('!') has no meaning here: remove it, or put the text in quotes",
)
_MERGE = Fault(
    "merge-key",
    "merge keys ('<<') are not part of YAML 1.2: write the keys out",
    found="<<",
    suggestion="an alias ('*name') can stand for a whole value",
    on_key=True,
)
_NOTHING = Fault("empty-document", "the document is empty")  # of blanks and comments
_SECOND_DOCUMENT = Fault(
    "several-documents", "a second document starts here: a config is one document"
)

_NO_ESCAPE = "this is not a YAML escape: put a text with backslashes in single quotes"
# What libyaml says, and what to say instead of the place where it noticed.
_HERE = {
    "did not find expected key": (
        "this belongs to nothing before it: check the indentation, and the quotes above"
    ),
    "did not find expected '-' indicator": (
        "this is no item of the list before it: check the indentation"
    ),
    "mapping values are not allowed in this context": (
        "a ':' cannot stand here: put the text in quotes, or check the indentation"
    ),
    "block sequence entries are not allowed in this context": (
        "a list cannot start here: put its first '-' on a line of its own"
    ),
    "did not find expected node content": "a value is missing before this",
    "did not find expected <document start>": "text after the end of the document",
    "found unknown escape character": _NO_ESCAPE,
    "did not find expected hexdecimal number": _NO_ESCAPE,
    "found invalid Unicode character escape code": (
        "this escape is no character: a character beyond U+FFFF is one escape, such as \\U0001F600"
    ),
    "found incompatible YAML document": "only YAML 1.1 and 1.2 can be read",
}
# What libyaml says, and what to say of the place where the thing it was reading starts.
_AT_START = {
    "found unexpected end of stream": "the quoted text that starts here does not end",
    "could not find expected ':'": "a ':' is missing after this key",
    "did not find expected alphabetic or numeric character": (
        "'&' and '*' start the name of a value: put the text in quotes"
    ),
    "did not find expected whitespace or line break": "'!' starts a tag: put the text in quotes",
}
# What libyaml says, and what to say before the line on which the thing it was reading starts.
_INSIDE = {
    "did not find expected ',' or ']'": "before this a ',' is missing, or the ']' of the list",
    "did not find expected ',' or '}'": "before this a ',' is missing, or the '}' of the object",
}
_NO_START = "found character that cannot start any token"
# What libyaml says where something stands behind a value that has ended.
_BEHIND = {
    "did not find expected key",
    "did not find expected '-' indicator",
    "did not find expected <document start>",
}


def read_yaml(text: str, building: Building) -> None:
    """Tell ``building`` what the text contains.

    Of several documents it is the first. Raises: `MalformedDocument` where the text is not YAML, or empty.
    """
    documents = 0
    event: Any
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                return building.overlook(_SECOND_DOCUMENT, event.start_mark.index)
            if take := _TAKEN.get(type(event)):
                take(event, span(event.start_mark.index, event.end_mark.index), building)
    except yaml.MarkedYAMLError as error:
        raise _refused(error, text, building) from error
    if not documents:
        raise MalformedDocument(_NOTHING, 0)


def _scalar(event: Any, at: Span, building: Building) -> None:
    meaning = event.value if event.style else plain(event.value)
    if event.tag is not None:
        meaning = _TAGGED
    if building.wants_key:
        _key(event, meaning, at, building)
    elif event.value or event.style or building.is_open:
        building.scalar(meaning, at, event.anchor)
    else:
        raise MalformedDocument(_NOTHING, 0)


def _key(event: Any, meaning: Any, at: Span, building: Building) -> None:
    """Take a key, and note what is wrong with one that is no string: first a fault of its own."""
    name = event.value
    if name == "<<" and not event.style:
        building.refuse(_MERGE, at)
    elif isinstance(meaning, Fault):
        building.refuse(meaning, at)
    elif not name and not event.style:
        fault = Fault("key-not-text", "a key is missing here", expected="a string")
        building.refuse(fault, at)
    elif not isinstance(meaning, str):
        quoted = f'"{printable(name)}"'
        message = f"a key has to be a string: write {quoted}"
        building.refuse(Fault("key-not-text", message, printable(name), quoted), at)
    building.key(name, at, event.anchor)


def _alias(event: Any, at: Span, building: Building) -> None:
    if building.wants_key:
        raise _not_a_key("an alias", at)
    building.alias(event.anchor, at)


def _begin(event: Any, at: Span, building: Building) -> None:
    is_object = isinstance(event, yaml.MappingStartEvent)
    if building.wants_key:
        raise _not_a_key("an object" if is_object else "a list", at)
    if event.tag is not None:
        building.refuse(_TAGGED, at)
    building.begin({} if is_object else [], bounds(at)[0], event.anchor)


def _end(event: Any, at: Span, building: Building) -> None:
    start, end = bounds(at)
    building.end(
        end if end > start else None
    )  # what has no bracket ends before blanks and comments


_TAKEN: Mapping[type, Callable[[Any, Span, Building], None]] = {
    yaml.ScalarEvent: _scalar,
    yaml.AliasEvent: _alias,
    yaml.MappingStartEvent: _begin,
    yaml.SequenceStartEvent: _begin,
    yaml.MappingEndEvent: _end,
    yaml.SequenceEndEvent: _end,
}


def _refused(error: yaml.MarkedYAMLError, text: str, building: Building) -> MalformedDocument:
    """Return what libyaml found, in words for whoever wrote the text."""
    problem = str(error.problem)
    here = error.problem_mark.index if error.problem_mark else len(text)
    start = error.context_mark.index if error.context_mark else here
    is_flow = building.is_open and text[building.innermost.offset] in "[{"
    if text.startswith("\t", here):
        fault = Fault("tab", "a tab cannot indent YAML: use spaces")
        return MalformedDocument(fault, here, with_blanks_for_tabs(text, here))
    if problem in (*_INSIDE, _NO_START) and (found := reference_at(text, here)):
        reference, edits = found
        message = f"inside {{ }} and [ ] a text with {reference} has to be in quotes"
        hint = f'write "{reference}", if a text is taken here'
        return MalformedDocument(
            Fault("malformed-yaml", message, suggestion=hint), edits[0].at, [edits]
        )
    if problem == _NO_START:
        sign = printable(text[here : here + 1])
        message = f"'{sign}' cannot start a value: put the value in quotes"
        return _malformed(message, here, _quoted(text, here, is_flow))
    if is_flow and not text[here:].strip():
        what = "object" if building.in_object else "list"
        message = f"the {what} that starts here does not end"
        return _malformed(message, building.innermost.offset)
    if problem in _BEHIND and (comma := without_comma(text, here)):
        message = "a comma after a value is not YAML: remove it"
        return _malformed(message, here, [comma])
    if problem in _INSIDE:
        line, _ = building.lines.at(start)
        return _malformed(f"{_INSIDE[problem]} that starts on line {line}", here)
    if problem in _AT_START:
        quoted = _quoted(text, start, is_flow) if text[start : start + 1] in ("*", "&") else []
        return _malformed(_AT_START[problem], start, quoted)
    return _malformed(_HERE.get(problem, f"{error.context or 'not YAML'}: {problem}"), here)


def _not_a_key(what: str, at: Span) -> MalformedDocument:
    """A list, an object or an alias stands where a key has to be."""
    fault = Fault("key-not-text", f"{what} cannot be a key", found=what, expected="a string")
    return MalformedDocument(fault, bounds(at)[0])


def _quoted(text: str, at: int, is_flow: bool) -> list[Edits]:
    """Return the one way to put a value in quotes, where brackets and commas say where it ends."""
    # libyaml reads ahead, so the bracket before it may not have been told yet.
    edits = in_quotes(text, at) if is_flow or is_in_brackets(text, at) else None
    return [] if edits is None else [edits]


def _malformed(message: str, at: int, mends: Sequence[Edits] = ()) -> MalformedDocument:
    return MalformedDocument(Fault("malformed-yaml", message), at, mends)
