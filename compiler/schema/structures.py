"""The fields that hold other fields: lists, objects by name, records, components; and what a record holds,
however deep in it, setting by setting: that is what rules look through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from marshmallow import ValidationError

from headrace.compiler.schema.fields import (
    AnyJson,
    Identifier,
    PipelineId,
    SecretText,
    Strict,
    Text,
)
from headrace.compiler.schema.records import Record, faults_of, object_of
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Fault, Path, shown, spelled

_LONGEST_KIND = 40
"""A longer word is no kind."""


class ListOf(Strict):
    """A list of one sort of thing; read as a tuple, because a record never changes.

    Null is no list: one that is to be empty is left out or written ``[]``.
    """

    is_null_absent = False
    of = list

    def __init__(
        self,
        inner: Strict,
        *,
        at_least: int = 0,
        at_most: int | None = None,
        noun: str | None = None,
    ) -> None:
        self.inner = inner
        self.at_least, self.at_most = at_least, at_most
        self.noun = noun or inner.noun or inner.type_name
        self.type_name = f"list of {noun or inner.type_name}"
        self.field_type = {"list": inner}  # as an unnamed field
        count = {1: "one", 2: "two"}.get(at_least, str(at_least))
        least = f"at least {count} " if at_least else ""
        self.expects = f"a list of {least}{self.noun}{'' if at_least == 1 else 's'}"
        super().__init__()

    @property
    def keys_inside(self) -> Collection[str]:  # type: ignore[override]
        """Those of its elements."""
        return self.inner.keys_inside

    def remedy(self, value: Any) -> str | None:
        """Return that one element makes a list as well, if it is one, or how one is written."""
        if isinstance(self.inner, Text) and isinstance(value, str) and self.inner.takes(value):
            parted = spelled([part.strip() for part in value.split(",")])
            return f"write {'[...]' if isinstance(self.inner, SecretText) else parted}"
        is_telling = isinstance(value, dict) and type(self.inner) is not AnyJson
        if is_telling and self.inner.takes(value):
            return "put it in a list: [ ... ]"
        element = None if value is None else self.inner.form(value)
        return None if element is None else f"write [{element}]"

    def read(self, value: Any) -> Any:
        """Read every element and tell all that is wrong with them."""
        listed: list[Any] = super().read(value)
        expected = None
        if len(listed) < self.at_least:
            expected = self.expects
        elif self.at_most is not None and len(listed) > self.at_most:
            expected = f"at most {self.at_most:,} {self.noun}s"
        if expected is not None:
            found = f"a list of {len(listed):,}" if listed else "an empty list"
            said = f"expected {expected}, found {found}"
            raise ValidationError([Fault("out-of-range", said, found, expected)])
        return tuple(_each_read(enumerate(listed), lambda _, value: self.inner.deserialize(value)))


class OneOrListOf(Strict):
    """One of a sort of thing, or a list of several; it is echoed as it was written."""

    def __init__(self, inner: Strict, *, at_most: int) -> None:
        self.inner = inner
        self.listed = ListOf(inner, at_least=1, at_most=at_most)
        self.type_name = f"{inner.type_name} | {self.listed.type_name}"
        self.expects = f"{inner.expects}, or {self.listed.expects}"
        super().__init__()

    def read(self, value: Any) -> Any:
        """Read the one, or the list."""
        if isinstance(value, list):
            return self.listed.read(value)
        if not isinstance(value, self.inner.of):
            raise self.wrong(value)
        return self.inner.read(value)


class ObjectOf(Strict):
    """An object whose keys are names, each with a value of one sort.

    Null is no object, unless that is said to be the same as leaving it out.
    """

    type_name = "object"
    of = dict
    names: ClassVar[Text] = Identifier()
    words: ClassVar[Mapping[str, tuple[Strict, str]]] = {}
    """Names with a meaning of their own, each with what the value is and a sentence: for editors alone."""

    def __init__(self, inner: Strict, *, noun: str, null_is_absent: bool = False) -> None:
        self.inner = inner
        self.noun = noun
        self.is_null_absent = null_is_absent
        self.expects = f"an object of {noun}s by name"
        super().__init__()

    def remedy(self, value: Any) -> str | None:
        """Return how a name that stands alone is declared, if nothing else need be said of it."""
        names = value if isinstance(value, list) else [value]
        are_names = bool(names) and all(isinstance(each, str) for each in names)
        if not are_names or not self.takes({name: {} for name in names}):
            return None
        return f"write {{ {', '.join(f'{shown(name)}: {{}}' for name in names)} }}"

    def read(self, value: Any) -> Any:
        """Read every value, and tell all that is wrong with them and with their names."""
        named: dict[str, Any] = super().read(value)
        return dict(zip(named, _each_read(named.items(), self._member), strict=True))

    def _member(self, name: str, value: Any) -> Any:
        try:
            self.names.read(name)
        except ValidationError as error:
            faults = [replace(fault, on_key=True) for fault in faults_of(error)]
            raise ValidationError(faults) from None
        return self.inner.deserialize(value)


class AnyObject(Strict):
    """An object of whatever values."""

    type_name = "object"
    of = dict
    is_told = False
    expects = "an object"


class WordOr(Strict):
    """One word, or what another field takes."""

    def __init__(self, word: str, inner: Strict) -> None:
        self.word, self.inner = word, inner
        self.is_null_absent = inner.is_null_absent
        self.keys_inside = inner.keys_inside
        self.type_name = f"{word} | {inner.type_name}"
        self.expects = f"{inner.expects}, or '{word}'"
        super().__init__()

    def read(self, value: Any) -> Any:
        """Take the word, or read what the other field takes; another word is neither."""
        if value == self.word:
            return self.word
        if isinstance(value, str):
            raise self.wrong(value)
        return self.inner.read(value)


class RecordOf(Strict):
    """An object that is a record of its own."""

    type_name = "object"
    of = dict
    is_told = False  # credentials are at home in objects, and may have been put in their place

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        self.keys_inside = record.options()
        self.field_type = {"object": record}
        self.expects = object_of(record)
        super().__init__()

    def form(self, value: Any) -> str | None:
        """Return what the record needs."""
        return written(self.record)

    def remedy(self, value: Any) -> str | None:
        """Return how nothing is said, where a record needs nothing, or the one thing it needs."""
        needed = [known for known in self.record.options().values() if known.required]
        if value is None:
            return None if needed else "write {}"
        is_one = len(needed) == 1 and not isinstance(value, dict | list)
        is_meant = is_one and self.takes({needed[0].wire: value})
        return f"write {written(self.record)}" if is_meant else None

    def read(self, value: Any) -> Any:
        """Read the record."""
        return self.record.load(super().read(value))


class TrueOr(RecordOf):
    """A record of its own, or true for one that says nothing; it is echoed as it was written."""

    def __init__(self, record: type[Record]) -> None:
        super().__init__(record)
        self.type_name = "true | object"
        self.expects = f"true, or {object_of(record)}"

    def remedy(self, value: Any) -> str | None:
        """Return how nothing is said, or the one thing that a value may be meant as."""
        if value is False:
            return "leave it out"
        [*known] = self.record.options()
        if len(known) == 1 and not isinstance(value, dict) and self.takes({known[0]: value}):
            return f"write {{ {known[0]}: {shown(value)} }}"
        return super().remedy(value)

    def read(self, value: Any) -> Any:
        """Take true, or read the record."""
        return True if value is True else super().read(value)


class ComponentOf(Strict):
    """A component of one family. What it says is read with the catalogue at hand, see `drafts`."""

    takes_null = True

    def __init__(self, family: str) -> None:
        self.family = self.type_name = family
        self.field_type = {"component": family}
        self.expects = f"an {family}" if family[0] in "io" else f"a {family}"
        super().__init__()

    def form(self, value: Any) -> str | None:
        """Return a component of the kind that stands there alone."""
        is_word = isinstance(value, str) and value.isidentifier() and len(value) < _LONGEST_KIND
        return f"{{ type: {value} }}" if is_word else None

    def takes(self, value: Any) -> bool:
        """Return whether a value looks like a component."""
        return isinstance(value, dict) and "type" in value


def written(record: type[Record]) -> str:
    """Return how a record is written: with the keys it needs, else any; values are not told."""
    options = record.options().values()
    keys = [known.wire for known in options if known.required] or [known.wire for known in options]
    return "{ " + ", ".join(f"{key}: ..." for key in keys) + " }"


def _each_read(entries: Iterable[tuple[Any, Any]], read: Callable[[Any, Any], Any]) -> list[Any]:
    """Read every entry, collecting what is wrong under its key, up to so many."""
    loaded, wrong = [], {}
    for key, value in entries:
        try:
            loaded.append(read(key, value))
        except ValidationError as error:
            wrong[key] = error.messages
            if len(wrong) == FAULTS:
                break
    if wrong:
        raise ValidationError(wrong)
    return loaded


Setting = tuple[Path, Strict, Any]
"""Where it stands in the record, the field it was read by, and what it holds."""


def settings(record: type[Record], values: Mapping[str, Any], path: Path = ()) -> Iterator[Setting]:
    """Yield every single setting of a record, also inside what it holds.

    ``values`` by wire name; what is absent is left out.
    """
    for wire, known in record.options().items():
        field: Any = known.field
        value = values.get(wire)
        if isinstance(value, Record | tuple):  # into most there is nothing to look
            yield from _inside(field, value, (*path, wire))
        elif value is not None:
            yield (*path, wire), field, value


def settings_of(record: Record) -> Iterator[Setting]:
    """Yield the settings of a record that has been read."""
    return settings(type(record), record.values())


def upstreams(found: Iterable[Setting]) -> Iterator[tuple[Path, str]]:
    """Yield the pipelines that settings name, each with its path."""
    for path, field, value in found:
        if isinstance(field, PipelineId):
            yield path, value


def _inside(field: Any, value: Any, path: Path) -> Iterator[Setting]:
    if isinstance(value, Record):
        yield from settings(type(value), value.values(), path)
    elif isinstance(field, ListOf) and isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _inside(field.inner, item, (*path, index))
    elif value is not None:  # null that stands for an item tells nothing, as where it is absent
        yield path, field, value
