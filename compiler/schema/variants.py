"""Objects that a `type` key tells apart: the root of such a union, its variants, the field for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from marshmallow import ValidationError

from headrace.compiler.schema.fields import MessageField, Name, Strict, Text, refused
from headrace.compiler.schema.ondemand import VariantsOnDemand
from headrace.compiler.schema.records import Record, faults_of, of_another_type
from headrace.compiler.text.diagnostics import Codes, Fault, printable, shown, spelled
from headrace.compiler.text.suggest import Others, nearest, others

CODES: Codes = {
    "unknown-kind": "A 'type' that is no known component.",
}

_R = TypeVar("_R", bound=Record)


class VariantOf(Strict):
    """An object tagged by `type`: one of the variants of a `Tagged` root."""

    noun = "object"
    of = dict
    is_told = False  # it is told in what to write, or not at all

    def __init__(self, union: type[Tagged]) -> None:
        self.union = union
        self.field_type = {"union": union}
        super().__init__()

    @property
    def type_name(self) -> str:  # type: ignore[override]
        """The kinds it may be."""
        return " | ".join(self.union.variants)

    @property
    def keys_inside(self) -> Collection[str]:  # type: ignore[override]
        """Those of all variants."""
        return {key for variant in self.union.variants.values() for key in variant.options()}

    @property
    def expects(self) -> str:  # type: ignore[override]
        """An object with a known `type`."""
        return _tagged(self.union.variants)

    def remedy(self, value: Any) -> str | None:
        """Return the objects that a value makes which stands there alone: ``5`` a number."""
        variants = self.union.variants
        if hint := _tag_alone(value, variants):
            return hint
        if isinstance(value, dict | list):
            return None
        fits = [*filter(None, (_made(tag, each, value) for tag, each in variants.items()))]
        return "write " + " or ".join(fits) if fits else None

    def form(self, value: Any) -> str | None:
        """Return the variant that its keys fit, or what they have in common."""
        if not isinstance(value, dict) or "type" in value:
            return None
        variants = self.union.variants
        hint = _around(value, variants) or _best_fit(value, variants)
        return "{ type: ..., ... }" if hint is None else hint.removeprefix("write ")

    def read(self, value: Any) -> Any:
        """Read the variant that the tag names."""
        tagged = super().read(value)
        return variant_named(tagged, self.union.variants).load(untagged(tagged))


class Tagged(Record):
    """The root of a union of records that a `type` key tells apart.

    A direct subclass is a root; its subclasses name their word, and if need be what it is called
    elsewhere: ``class Static(InputBuffer, tag="static", elsewhere="count")``. They are in the order in
    which they are defined, or of ``listed`` where files of their own have them: those of ``package``.
    """

    variants: ClassVar[VariantsOnDemand[type[Tagged]]]
    tag: ClassVar[str] = ""
    listed: ClassVar[int] = 0

    def __init_subclass__(
        cls, tag: str | None = None, listed: int = 0, package: str | None = None, **keywords: Any
    ) -> None:
        super().__init_subclass__(**keywords)
        if Tagged in cls.__bases__:
            cls.variants = VariantsOnDemand(package)
        if tag is not None:
            cls.tag, cls.listed = tag, listed
            cls.variants.add(cls)

    @classmethod
    def union(cls) -> type[Tagged]:
        """Return the root."""
        return next(each for each in cls.__mro__ if Tagged in each.__bases__)

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the object with its tag first."""
        return {"type": self.tag, **super().dump(masked=masked)}


def untagged(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options beside the tag."""
    return {key: inner for key, inner in value.items() if key != "type"}


def variant_named(value: Any, variants: Mapping[str, type[_R]]) -> type[_R]:
    """Return the record that the `type` of ``value`` names.

    Raises:
        ValidationError: it is no object, or the tag is missing or unknown.
    """
    if not isinstance(value, dict):
        fault = of_another_type(value, _tagged(variants))
        raise ValidationError([replace(fault, suggestion=_tag_alone(value, variants))])
    if "type" not in value:
        hint = _around(value, variants) or _renamed(value, variants) or _best_fit(value, variants)
        words = f"one of {', '.join(variants)}"
        raise refused("missing-key", "'type' is required", expected=words, hint=hint)
    kind = value["type"]
    if kind is None and "null" in variants:
        kind = "null"  # unquoted in YAML
    if type(kind) is str and kind in variants:
        return variants[kind]
    fault = Fault(
        "unknown-kind",
        f"unknown type {shown(kind)}",
        shown(kind),
        f"one of {', '.join(variants)}",
        path=("type",),
    )
    meant = nearest(kind, variants, other_kinds(variants)) if type(kind) is str else None
    raise ValidationError([fault.meaning(meant)])


def other_kinds(variants: Mapping[str, type[Record]]) -> Others:
    """Return what the kinds are called elsewhere, each with the kind itself."""
    return others({kind: variant.elsewhere for kind, variant in variants.items()})


def _tagged(variants: Mapping[str, type[Record]]) -> str:
    """Return what a variant is read from."""
    return "an object whose 'type' is one of " + ", ".join(variants)


def _tag_alone(value: Any, variants: Mapping[str, type[Record]]) -> str | None:
    """Return what to write for a tag that stands where its object belongs."""
    is_tag = isinstance(value, str) and value in variants
    return _written(value, variants[value]) if is_tag else None


def _around(value: Mapping[str, Any], variants: Mapping[str, type[Record]]) -> str | None:
    """Return what to write for options that stand under their tag: ``{string: {field: ...}}``."""
    if len(value) != 1:
        return None
    [(key, inner)] = value.items()
    tag = key if key in variants else nearest(key, variants, other_kinds(variants))
    given = inner if isinstance(inner, dict) else {}
    return None if tag is None else _written(tag, variants[tag], given)


def _renamed(value: Mapping[str, Any], variants: Mapping[str, type[Record]]) -> str | None:
    """Return that a key is `type` here, of one that nothing reads and that says a kind."""
    known = {key for variant in variants.values() for key in variant.options()}
    kinds = {*variants, *other_kinds(variants)}
    said = [
        key
        for key, kind in value.items()
        if key not in known and isinstance(kind, str) and kind in kinds
    ]
    return f"write 'type' instead of '{printable(said[0])}'" if len(said) == 1 else None


def _best_fit(value: Mapping[str, Any], variants: Mapping[str, type[Record]]) -> str | None:
    """Return what to write for options that belong to one variant only, or say least wrong there."""
    fit = [
        tag for tag, variant in variants.items() if value and value.keys() <= {*variant.options()}
    ]
    if len(fit) > 1:
        wrong = {tag: _faults(variants[tag], value) for tag in fit}
        fit = [tag for tag in fit if wrong[tag] == min(wrong.values())]
    return _written(fit[0], variants[fit[0]], value) if len(fit) == 1 else None


def _faults(variant: type[Record], value: Mapping[str, Any]) -> int:
    """Return how many faults a variant would find."""
    try:
        variant.load(value)
    except ValidationError as error:
        return len(list(faults_of(error)))
    return 0


def _made(tag: str, variant: type[Record], value: Any) -> str | None:
    """Return a variant as it is written with a value for the one thing that it needs, if that fits."""
    options = variant.options().values()
    if value is None:
        return None if options else f"{{ type: {tag} }}"
    needed = [known for known in options if known.required]
    if len(needed) != 1 or not needed[0].field.takes(value):  # type: ignore[attr-defined]
        return None
    # Never one that may be a credential.
    is_plain = not isinstance(value, str) or type(needed[0].field) in (Text, Name, MessageField)
    return f"{{ type: {tag}, {needed[0].wire}: {spelled(value) if is_plain else '...'} }}"


def _written(tag: str, variant: type[Record], given: Collection[str] = ()) -> str:
    """Return how a variant is written, with what it needs and what is given; values are not told."""
    options = variant.options().values()
    keys = [known.wire for known in options if known.required or known.wire in given]
    return "write {" + ", ".join([f" type: {tag}", *(f"{key}: ..." for key in keys)]) + " }"
