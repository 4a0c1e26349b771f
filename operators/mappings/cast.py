"""The mapping that converts a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.compiler.casts import CASTS, COMMA, DECIMAL_MARKS, OTHER_NAMES, float_with_comma
from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.jsontext import Decoding
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.compiler.texttemplates import TEXT_COST
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    OfField,
    as_option,
    cast_by,
    default_option,
    from_option,
    present,
)

_COST = "20 * len({0})"
_COSTS = {"integer": "20 * len({0}) + min(len({0}), 4_300) ** 2 // 150", "json": "100 * len({0})"}
"""Nanoseconds that a text takes that is converted; with the square of its length where it is an integer."""


class Cast(OfField, tag="cast", listed=40, elsewhere="convert parse to_type"):
    """Converts a field; a value that will not convert fails the batch."""

    converts = True

    from_: str = from_option("Field to convert.")
    to: str = option(
        Choice(*CASTS, elsewhere=OTHER_NAMES),
        "Type to convert to.",
        elsewhere="as_type into_type kind",
    )
    as_: str | None = as_option()
    decimal: str = option(
        Choice(*DECIMAL_MARKS),
        "What stands before the decimals of a `float` in a text: `12,5` needs a comma.",
        default=".",
        additive=True,
        elsewhere="decimal_mark decimal_separator",
    )
    default: Literal | None = default_option()

    def rules(self) -> Iterator[Fault]:
        """Refuse a mark of decimals for a type that has none."""
        yield from super().rules()
        if self.decimal == COMMA and self.to != "float":
            yield Fault(
                "conflict",
                f"'decimal' is about a float, and this casts to {self.to}",
                found=shown(self.decimal),
                expected="to: float, or no 'decimal'",
                path=("decimal",),
            )

    @property
    def _cast(self) -> Callable[..., JsonValue]:
        return float_with_comma if self.decimal == COMMA else CASTS[self.to]

    @property
    def is_never_object(self) -> bool:  # type: ignore[override]  # depends on the type
        """Only JSON text can hold an object."""
        return self.to != "json"

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the field, converted."""
        found = present(self.from_, message)
        by = self._by(ctx)
        return MISSING if found is MISSING else cast_by(self._cast, found, self.from_, *by)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read it and call the conversion."""
        found = code.read(Path(self.from_), optional=optional)
        made: dict[str, str] = {}
        if self.to == "text":
            made = {"cost": f"{TEXT_COST} * len({{0}})", "costs_if": f"len({{0}}) > {USUAL}"}
        else:
            long = f"{found}.__class__ is str and len({found}) > {USUAL}"
            code.spend(_COSTS.get(self.to, _COST).format(found), long)
        cast = code.constant(self._cast, self.to)
        arguments = [found, *(code.constant(each, "decoding") for each in self._by(ctx))]
        return Formula(f"{cast}({', '.join(arguments)})", [found], raises_on_none=True, **made)

    def _by(self, ctx: Context) -> Sequence[Decoding]:
        """Return what the conversion needs besides the value: JSON is decoded as its pipeline does."""
        return (ctx.decoding,) if self.to == "json" else ()
