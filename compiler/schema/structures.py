"""The fields that hold other fields: lists, objects by name, records, components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, ClassVar

from marshmallow import ValidationError

from headrace.compiler.schema.fields import AnyJson, Identifier, SecretText, Strict, Text
from headrace.compiler.schema.records import Record, faults_of, not_an_object, object_of
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Fault, shown, spelled

_LONGEST_KIND = 40
"""A longer word is no kind."""


class ListOf(Strict):
    """A list of one sort of thing; read as a tuple, because a record never changes.

    Null is no list: one that is to be empty is left out or written ``[]``.
    """

    is_null_absent = False

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
        super().__init__()

    @property
    def field_type(self) -> Any:
        """The element, as an unnamed field."""
        return {"list": self.inner}

    @property
    def keys_inside(self) -> Collection[str]:  # type: ignore[override]
        """Those of its elements."""
        return self.inner.keys_inside

    @property
    def expects(self) -> str:
        """A list of what, and its least length."""
        if self.at_least == 0:
            return f"a list of {self.noun}s"
        count = {1: "one", 2: "two"}.get(self.at_least, str(self.at_least))
        return f"a list of at least {count} {self.noun}{'s' if self.at_least > 1 else ''}"

    def remedy(self, value: Any) -> str | None:
        """Return that one element makes a list as well, if it is one, or how one is written."""
        if isinstance(self.inner, Text) and isinstance(value, str) and self.inner.takes(value):
            is_secret = isinstance(self.inner, SecretText)
            return "write [...]" if is_secret else f"write {spelled(_parted(value))}"
        is_telling = isinstance(value, dict) and type(self.inner) is not AnyJson
        if is_telling and self.inner.takes(value):
            return "put it in a list: [ ... ]"
        element = None if value is None else self.inner.form(value)
        return None if element is None else f"write [{element}]"

    def read(self, value: Any) -> Any:
        """Read every element and tell all that is wrong with them."""
        if not isinstance(value, list):
            raise self.wrong(value)
        if len(value) < self.at_least:
            raise self._of_another_length(value, self.expects)
        if self.at_most is not None and len(value) > self.at_most:
            raise self._of_another_length(value, f"at most {self.at_most:,} {self.noun}s")
        return tuple(_each(value, self.inner.deserialize))

    def _of_another_length(self, value: list[Any], expected: str) -> ValidationError:
        found = f"a list of {len(value):,}" if value else "an empty list"
        said = f"expected {expected}, found {found}"
        return ValidationError([Fault("out-of-range", said, found, expected)])


class ObjectOf(Strict):
    """An object whose keys are names, each with a value of one sort.

    Null is no object, unless that is said to be the same as leaving it out.
    """

    type_name = "object"
    names: ClassVar[Text] = Identifier()

    def __init__(self, inner: Strict, *, noun: str, null_is_absent: bool = False) -> None:
        self.inner = inner
        self.noun = noun
        self.is_null_absent = null_is_absent
        super().__init__()

    @property
    def field_type(self) -> Any:
        """An object of any keys: the wire has no word for one."""
        return "json"

    @property
    def expects(self) -> str:
        """An object."""
        return f"an object of {self.noun}s by name"

    def remedy(self, value: Any) -> str | None:
        """Return how a name that stands alone is declared, if nothing else need be said of it."""
        names = value if isinstance(value, list) else [value]
        if not names or not all(isinstance(each, str) for each in names):
            return None
        if not self.takes({name: {} for name in names}):
            return None
        return f"write {{ {', '.join(f'{shown(name)}: {{}}' for name in names)} }}"

    def read(self, value: Any) -> Any:
        """Read every value, and tell all that is wrong with them and with their names."""
        if not isinstance(value, dict):
            raise self.wrong(value)
        read, wrong = {}, {}
        for name, inner in value.items():
            try:
                self._check(name)
                read[name] = self.inner.deserialize(inner)
            except ValidationError as error:
                wrong[name] = error.messages
                if len(wrong) == FAULTS:
                    break
        if wrong:
            raise ValidationError(wrong)
        return read

    def _check(self, name: str) -> None:
        """Raise what is wrong with a name, at the name."""
        try:
            self.names.read(name)
        except ValidationError as error:
            faults = [replace(fault, on_key=True) for fault in faults_of(error)]
            raise ValidationError(faults) from None


class AnyObject(Strict):
    """An object of whatever values."""

    type_name = "object"

    @property
    def expects(self) -> str:
        """An object."""
        return "an object"

    def read(self, value: Any) -> dict[str, Any]:
        """Take an object."""
        if not isinstance(value, dict):
            raise ValidationError([not_an_object(value)])
        return value


class RecordOf(Strict):
    """An object that is a record of its own."""

    type_name = "object"

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        super().__init__()

    @property
    def keys_inside(self) -> Collection[str]:  # type: ignore[override]
        """Those of the record."""
        return self.record.options()

    @property
    def field_type(self) -> Any:
        """The record it holds."""
        return {"object": self.record}

    def form(self, value: Any) -> str | None:
        """Return what the record needs."""
        return written(self.record)

    @property
    def expects(self) -> str:
        """An object with its keys."""
        return object_of(self.record)

    def wrong(self, value: Any) -> ValidationError:
        """Return the error for what is no object, of which the type alone is told."""
        fault = not_an_object(value, self.expects)
        return ValidationError([replace(fault, suggestion=self.remedy(value))])

    def remedy(self, value: Any) -> str | None:
        """Return how nothing is said, where a record needs nothing, or the one thing it needs."""
        needed = [known for known in self.record.options().values() if known.required]
        if value is None:
            return None if needed else "write {}"
        if isinstance(value, dict | list) or len(needed) != 1:
            return None
        return f"write {written(self.record)}" if self.takes({needed[0].wire: value}) else None

    def read(self, value: Any) -> Any:
        """Read the record."""
        if not isinstance(value, dict):
            raise self.wrong(value)
        return self.record.load(value)


class ComponentOf(Strict):
    """A component of one family. What it says is read with the catalogue at hand, see `drafts`."""

    takes_null = True

    def __init__(self, family: str) -> None:
        self.family = self.type_name = family
        self.field_type = {"component": family}
        super().__init__()

    @property
    def expects(self) -> str:
        """A component."""
        return f"an {self.family}" if self.family[0] in "io" else f"a {self.family}"

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


def _parted(text: str) -> list[str]:
    """Return what a text lists that has commas between."""
    return [part.strip() for part in text.split(",")]


def _each(values: Iterable[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Read every element, collecting what is wrong under its index, up to so many."""
    loaded, wrong = [], {}
    for index, value in enumerate(values):
        try:
            loaded.append(read(value))
        except ValidationError as error:
            wrong[index] = error.messages
            if len(wrong) == FAULTS:
                break
    if wrong:
        raise ValidationError(wrong)
    return loaded
