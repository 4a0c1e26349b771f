"""Records: frozen classes whose options carry their own schema and their own documentation.

A config object is a call: its keys are the arguments of a class. So a record is declared once, as

    class Rotation(Record):
        \"\"\"When a part is closed and the next one opened.\"\"\"

        max_rows: int | None = option(Integer(min=1), "Close at this many rows.", default=None)

and the marshmallow schema, the validation, the echo and the reference pages all ask that class. A
Python keyword takes a trailing underscore (`from_`); its wire name has none.

Source: https://marshmallow.readthedocs.io/ (schemas), PEP 681 (`dataclass_transform`).
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Self, dataclass_transform

import marshmallow
from marshmallow import ValidationError

from headrace.compiler.decimals import Written
from headrace.compiler.schema.frozen import Frozen, fields_of
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Codes, Fault, path_text
from headrace.compiler.text.suggest import NO_OTHERS, Others, nearest, others

CODES: Codes = {
    "unknown-key": "A key that nothing reads.",
}


@dataclasses.dataclass(frozen=True)
class Option:
    """One documented option of a record: its wire name, its field, one sentence."""

    attribute: str
    wire: str
    field: marshmallow.fields.Field[Any]
    doc: str
    required: bool
    default: Any
    additive: bool
    elsewhere: str = ""
    """What the key is called elsewhere, words in one text."""


def option(
    field: marshmallow.fields.Field[Any],
    doc: str,
    *,
    default: Any = dataclasses.MISSING,
    wire: str | None = None,
    additive: bool = False,
    elsewhere: str = "",
) -> Any:
    """Declare one option of a record; without a ``default`` it is required.

    ``additive`` marks a field that the established format lacks: absent, it changes nothing.
    ``elsewhere`` are words for the key that users of other tools would write: they are refused, and
    answered with ours.
    """
    meta = {"field": field, "doc": doc, "additive": additive, "elsewhere": elsewhere}
    return dataclasses.field(default=default, metadata={"option": meta, "wire": wire})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Record(Frozen):
    """A frozen object of a config."""

    given: ClassVar[Any] = frozenset()
    """Wire names that the document spelled out: an echo repeats those. Empty if built by hand."""
    elsewhere: ClassVar[str] = ""
    """What users of other tools would call it by its `type`, words in one text."""
    lacks: ClassVar[Mapping[str, str]] = {}
    """Keys that its neighbours have, each with why this one has not, as a clause."""

    def __init_subclass__(cls, elsewhere: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.elsewhere = elsewhere

    def __post_init__(self) -> None:
        if faults := list(self.rules()):
            raise ValidationError(faults)

    def rules(self) -> Iterator[Fault]:
        """Yield what is wrong between options that are each right by themselves."""
        return iter(())

    @classmethod
    @cache
    def options(cls) -> Mapping[str, Option]:
        """Return the options by wire name, in the order they are declared: its own, then inherited ones."""
        found = {}
        known = {entry.name: entry for entry in fields_of(cls)}
        declared = (name for each in cls.__mro__ for name in inspect.get_annotations(each))
        for entry in (known[name] for name in dict.fromkeys(declared) if name in known):
            wire = entry.metadata["wire"] or entry.name.rstrip("_")
            required = entry.default is dataclasses.MISSING
            found[wire] = Option(
                attribute=entry.name,
                wire=wire,
                required=required,
                default=None if required else entry.default,
                **entry.metadata["option"],
            )
        return found

    @classmethod
    @cache
    def other_keys(cls) -> Others:
        """Return what the keys are called elsewhere, each with the key itself."""
        return others({wire: known.elsewhere for wire, known in cls.options().items()})

    @classmethod
    @cache
    def schema(cls) -> marshmallow.Schema:
        """Return the marshmallow schema; loading with it gives an instance."""
        declared: dict[str, Any] = {}
        for wire, known in cls.options().items():
            # A copy, because one field object may serve several options.
            field = declared[wire] = copy.copy(known.field)
            field.required = known.required
            field.metadata = {**field.metadata, "description": known.doc}
        made: type[RecordSchema] = type(cls.__name__, (RecordSchema,), declared)
        made.record = cls  # set afterwards: an option may have that name as well
        return made()

    @classmethod
    def unknown(cls, key: str, why: str) -> Fault:
        """Return the fault of a key that neighbours have, at its place, and why this one has not."""
        others = "one of " + ", ".join(each for each in cls.options() if each != key)
        said = f"unknown key '{key}': {why}"
        return Fault("unknown-key", said, key, others, on_key=True, path=(key,))

    @classmethod
    def load(cls, document: Any) -> Self:
        """Read a record from a decoded document.

        Raises:
            marshmallow.ValidationError: with `Fault` objects as messages; see `faults_of`.
        """
        return cls.schema().load(document)  # type: ignore[no-any-return]

    def values(self) -> dict[str, Any]:
        """Return what every option holds, by wire name."""
        return {wire: getattr(self, known.attribute) for wire, known in self.options().items()}

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the record as the API echoes it (contract 1.3).

        Not ``masked``, as a save writes it: with the credentials that are spelled out in a url.
        """
        echo = {}
        for wire, known in self.options().items():
            value = getattr(self, known.attribute)
            given = wire in self.given or (not self.given and value != known.default)
            never_absent = known.field.never_absent  # type: ignore[attr-defined]
            if known.required or (given and not (never_absent and value == known.default)):
                echo[wire] = dumped(value, masked=masked)
        return echo


class RecordSchema(marshmallow.Schema):
    """Refuses unknown keys with a suggestion, reads null as absent where that is meant."""

    class Meta:
        """Unknown keys are refused by `refuse_unknown`, which knows what to suggest."""

        unknown = marshmallow.EXCLUDE

    record: type[Record]

    @marshmallow.pre_load
    def absent_nulls(self, data: Any, **_: Any) -> Any:
        """Refuse what is no object; drop the nulls that say nothing."""
        if not isinstance(data, dict):
            raise ValidationError([of_another_type(data, object_of(self.record))])
        return {
            key: value
            for key, value in data.items()
            if value is not None or not self._is_null_absent(key)
        }

    def _is_null_absent(self, key: str) -> bool:
        field = self.fields.get(key)
        return field is not None and not field.required and field.is_null_absent  # type: ignore[attr-defined]

    @marshmallow.validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_unknown(self, _data: Any, original: Any, **_: Any) -> None:
        """Refuse keys that nobody declared: a typo must not change what runs in silence."""
        undeclared = (key for key in original if key not in self.fields)
        unknown: dict[str, Any] = {
            key: [self._unknown(key, original)] for key in islice(undeclared, FAULTS)
        }
        if unknown:
            raise ValidationError(unknown)

    def _unknown(self, key: str, given: Collection[str]) -> UnknownKey:
        """Return the fault of a key, and where it belongs if an object further in has one like it."""
        if key in self.record.lacks:
            lacking = self.record.unknown(key, self.record.lacks[key])
            said = (lacking.message, lacking.found, lacking.expected)
            return UnknownKey("unknown-key", *said, on_key=True)
        fault = unknown_key(key, self.fields, given, self.record.other_keys())
        homes = [wire for wire, field in self.fields.items() if key in field.keys_inside]  # type: ignore[attr-defined]
        if fault.meant is not None or not homes:
            return fault
        meant = next((wire for wire in homes if wire not in given), None)
        suggestion = f"'{key}' belongs in {listed(homes, 'or')}"
        return dataclasses.replace(fault, suggestion=suggestion, meant=meant)

    @marshmallow.post_load
    def instance(self, data: dict[str, Any], **_: Any) -> Any:
        """Build the record; its own rules speak now."""
        options = self.record.options()
        built = self.record(**{options[wire].attribute: value for wire, value in data.items()})
        object.__setattr__(built, "given", frozenset(data))
        return built

    def handle_error(self, error: ValidationError, data: Any, **_: Any) -> None:
        """Leave out what only follows from another fault, add what its own rules say.

        A misspelt key is one mistake, not two: nobody is told that it is missing, and the rules are
        asked as if it were spelled right. Other unknown keys do not keep them from being asked,
        since all the known ones are right.
        """
        faults = list(faults_of(error))
        unknown = [f for f in faults if isinstance(f, UnknownKey) and len(f.path) == 1]
        misspelt = {(fault.meant,) for fault in unknown}
        kept = [f for f in faults if f.code != "missing-key" or f.path not in misspelt]
        if len(unknown) == len(kept):
            kept += self._said_by_rules(error.valid_data, unknown, data)
        raise ValidationError(kept, data=data, valid_data=error.valid_data)

    def _said_by_rules(self, valid: Any, unknown: Iterable[UnknownKey], data: Any) -> list[Fault]:
        try:
            meant = {
                fault.meant: self.fields[fault.meant].deserialize(data[fault.path[0]])
                for fault in unknown
                if fault.meant is not None
            }
        except ValidationError:
            return []  # what they would say depends on it
        try:
            self.instance({**valid, **meant})
        except ValidationError as error:
            return list(faults_of(error))
        return []


@dataclasses.dataclass(frozen=True, slots=True)
class UnknownKey(Fault):
    """A key nobody declared, and the one that is probably meant."""

    meant: str | None = None


def is_misspelt(key: str, faults: Iterable[Fault]) -> bool:
    """Return whether an unknown key of the record itself is probably meant to be ``key``."""
    unknown = (each for each in faults if isinstance(each, UnknownKey) and len(each.path) == 1)
    return any(each.meant == key for each in unknown)


def unknown_key(
    key: str,
    allowed: Collection[str],
    given: Collection[str] = (),
    elsewhere: Others = NO_OTHERS,
) -> UnknownKey:
    """Return the fault for a key nobody declared; what is given already cannot be meant."""
    meant = nearest(key, [each for each in allowed if each not in given], elsewhere)
    fault = UnknownKey(
        "unknown-key",
        f"unknown key '{key}'",
        found=key,
        expected="one of " + ", ".join(allowed) if allowed else "no keys",
        on_key=True,
        meant=meant,
    )
    return fault.meaning(meant)


_TYPES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Written: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def json_type(value: Any) -> str:
    """Return the JSON type of a decoded value, with its article."""
    return _TYPES.get(type(value), "a value")


def listed(words: Sequence[str], joint: str = "and") -> str:
    """Return words as a part of a sentence: ``'field', 'operator' and 'value'``."""
    *first, last = [f"'{word}'" for word in words]
    return f"{', '.join(first)} {joint} {last}" if first else last


def object_of(record: type[Record]) -> str:
    """Return what a record is read from: an object with the keys it needs, or else may have."""
    options = record.options()
    required = [wire for wire, known in options.items() if known.required]
    any_of = "any of " + ", ".join(f"'{wire}'" for wire in options)
    return f"an object with {listed(required) if required else any_of}"


def of_another_type(value: Any, expected: str = "an object") -> Fault:
    """Return the fault for a value of another type than is expected.

    Only its type is told: credentials are at home in objects, and may have been put in their place.
    """
    found = json_type(value)
    return Fault("wrong-type", f"expected {expected}, found {found}", found, expected)


def dumped(value: Any, *, masked: bool = True) -> Any:
    """Return a value of a record as JSON: records as objects, tuples as lists."""
    if hasattr(value, "dump"):
        return value.dump(masked=masked)
    if isinstance(value, tuple):
        return [dumped(item, masked=masked) for item in value]
    if isinstance(value, dict):
        return {key: dumped(item, masked=masked) for key, item in value.items()}
    return value


def faults_of(error: ValidationError) -> Iterator[Fault]:
    """Flatten a marshmallow error into faults whose paths start at the loaded record."""
    return _flatten(error.messages, ())


def _flatten(messages: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    match messages:
        case dict():
            for key, inner in messages.items():
                yield from _flatten(inner, path if key == "_schema" else (*path, key))
        case list():
            for inner in messages:
                yield from _flatten(inner, path)
        case Fault():
            yield dataclasses.replace(messages, path=path + messages.path)
        case _:
            raise TypeError(f"a fault was expected at {path_text(path)}, found {messages!r}")
