"""YAML text read by the rules of YAML 1.2, with the place of everything in it.

libyaml finds the structure and tells it as events. What an unquoted word means is decided here, as
its own rules are those of YAML 1.1. Anchors and aliases are understood. Tags and merge keys
(``<<``) are refused: a config has no use for the former, and YAML 1.2 does not have the latter.

Source: https://yaml.org/spec/1.2.2/ and https://pyyaml.org/wiki/PyYAMLDocumentation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from headrace.compiler.text import yamlfaults
from headrace.compiler.text.composing import Building
from headrace.compiler.text.diagnostics import Codes, Fault, printable
from headrace.compiler.text.scalars import plain

CODES: Codes = {
    "merge-key": "A YAML merge key ('<<'), which YAML 1.2 does not have.",
    "tag": "A YAML tag ('!something'), which a config has no use for.",
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
                return building.overlook(yamlfaults.SECOND_DOCUMENT, event.start_mark.index)
            if take := _TAKEN.get(type(event)):
                take(event, event.start_mark.index, building)
    except yaml.MarkedYAMLError as error:
        raise yamlfaults.malformed(error, text, building) from error
    if not documents:
        raise yamlfaults.nothing()


def _scalar(event: Any, at: int, building: Building) -> None:
    if building.wants_key:
        return _key(event, at, building)
    if not (event.value or event.style or building.is_open):
        raise yamlfaults.nothing()
    building.scalar(_meaning(event), at, event.anchor)


def _key(event: Any, at: int, building: Building) -> None:
    meaning = _meaning(event)
    if event.value == "<<" and not event.style:
        building.refuse(_MERGE, at)
    elif not isinstance(meaning, str):
        building.refuse(_no_text(meaning, event.value), at)
    building.key(event.value, at, event.anchor)


def _alias(event: Any, at: int, building: Building) -> None:
    if building.wants_key:
        raise yamlfaults.not_a_key("an alias", at)
    building.alias(event.anchor, at)


def _object(event: Any, at: int, building: Building) -> None:
    _begin({}, event, at, building)


def _list(event: Any, at: int, building: Building) -> None:
    _begin([], event, at, building)


def _begin(value: dict[str, Any] | list[Any], event: Any, at: int, building: Building) -> None:
    if building.wants_key:
        raise yamlfaults.not_a_key("an object" if isinstance(value, dict) else "a list", at)
    if event.tag is not None:
        building.refuse(_TAGGED, at)
    building.begin(value, at, event.anchor)


def _end(event: Any, at: int, building: Building) -> None:
    building.end()


def _meaning(event: Any) -> Any:
    if event.tag is not None:
        return _TAGGED
    return event.value if event.style else plain(event.value)


def _no_text(meaning: Any, written: str) -> Fault:
    """Return what is wrong with a key that is no string; a fault of its own comes first."""
    if isinstance(meaning, Fault):
        return meaning
    if not written:
        return Fault("key-not-text", "a key is missing here", expected="a string")
    quoted = f'"{printable(written)}"'
    message = f"a key has to be a string: write {quoted}"
    return Fault("key-not-text", message, found=printable(written), expected=quoted)


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

_TAKEN: Mapping[type, Callable[[Any, int, Building], None]] = {
    yaml.ScalarEvent: _scalar,
    yaml.AliasEvent: _alias,
    yaml.MappingStartEvent: _object,
    yaml.SequenceStartEvent: _list,
    yaml.MappingEndEvent: _end,
    yaml.SequenceEndEvent: _end,
}
