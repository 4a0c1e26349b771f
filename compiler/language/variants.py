"""Objects that a `type` key tells apart: the root of such a union, its variants, the field for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from marshmallow import ValidationError

from headrace.compiler.language.diagnostics import Fault, shown
from headrace.compiler.language.fields import Strict, refused
from headrace.compiler.language.records import Record, not_an_object
from headrace.compiler.language.suggest import did_you_mean, nearest

_R = TypeVar("_R", bound=Record)


class VariantOf(Strict):
    """An object tagged by `type`: one of the variants of a `Tagged` root."""

    noun = "object"

    def __init__(self, union: type[Tagged]) -> None:
        self.union = union
        super().__init__()

    @property
    def type_name(self) -> str:  # type: ignore[override]
        """The kinds it may be."""
        return " | ".join(self.union.variants)

    @property
    def field_type(self) -> Any:
        """The union."""
        return {"union": self.union}

    @property
    def keys_inside(self) -> Collection[str]:  # type: ignore[override]
        """Those of all variants."""
        return {key for variant in self.union.variants.values() for key in variant.options()}

    @property
    def expects(self) -> str:
        """An object with a known `type`."""
        return _tagged(self.union.variants)

    def read(self, value: Any) -> Any:
        """Read the variant that the tag names."""
        return variant_of(value, self.union.variants)


class Tagged(Record):
    """The root of a union of records that a `type` key tells apart.

    A direct subclass is a root; its subclasses name their word:
    ``class Static(InputBuffer, tag="static")``.
    """

    variants: ClassVar[dict[str, type[Tagged]]]
    tag: ClassVar[str] = ""

    def __init_subclass__(cls, tag: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if Tagged in cls.__bases__:
            cls.variants = {}
        if tag is not None:
            cls.tag = tag
            cls.variants[tag] = cls

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the object with its tag first."""
        return {"type": self.tag, **super().dump(masked=masked)}


def variant_of(value: Any, variants: Mapping[str, type[Record]]) -> Any:
    """Read ``value`` as the record its `type` names.

    Raises:
        ValidationError: the tag is missing or unknown, or the record refuses the rest.
    """
    return variant_named(value, variants).load(untagged(value))


def untagged(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options beside the tag."""
    return {key: inner for key, inner in value.items() if key != "type"}


def variant_named(value: Any, variants: Mapping[str, type[_R]]) -> type[_R]:
    """Return the record that the `type` of ``value`` names.

    Raises:
        ValidationError: it is no object, or the tag is missing or unknown.
    """
    words = ", ".join(variants)
    if not isinstance(value, dict):
        fault = not_an_object(value, _tagged(variants))
        raise ValidationError([replace(fault, suggestion=_tag_alone(value, variants))])
    if "type" not in value:
        hint = _around(value, variants) or _only_fit(value, variants)
        raise refused("missing-key", "'type' is required", expected=f"one of {words}", hint=hint)
    kind = value["type"]
    if kind is None and "null" in variants:
        kind = "null"  # unquoted in YAML
    if type(kind) is str and kind in variants:
        return variants[kind]
    fault = Fault(
        "unknown-kind",
        f"unknown type {shown(kind)}",
        shown(kind),
        f"one of {words}",
        did_you_mean(kind, variants) if type(kind) is str else None,
        path=("type",),
    )
    raise ValidationError([fault])


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
    tag = key if key in variants else nearest(key, variants)
    given = inner if isinstance(inner, dict) else {}
    return None if tag is None else _written(tag, variants[tag], given)


def _only_fit(value: Mapping[str, Any], variants: Mapping[str, type[Record]]) -> str | None:
    """Return what to write for options that belong to one variant only."""
    fit = [
        tag for tag, variant in variants.items() if value and value.keys() <= {*variant.options()}
    ]
    return _written(fit[0], variants[fit[0]], value) if len(fit) == 1 else None


def _written(tag: str, variant: type[Record], given: Collection[str] = ()) -> str:
    """Return how a variant is written, with what it needs and what is given; values are not told."""
    options = variant.options().values()
    keys = [known.wire for known in options if known.required or known.wire in given]
    return "write {" + ", ".join([f" type: {tag}", *(f"{key}: ..." for key in keys)]) + " }"
