"""The mapping that writes a constant."""

from __future__ import annotations

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import Missing
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import VariantOf
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import Writing


class Constant(Writing, tag="constant", listed=20, elsewhere="add assign literal set value"):
    """Writes a constant."""

    is_never_object = True

    value_: Literal = option(VariantOf(Literal), "What to write.")
    as_: str = option(
        MessageField(),
        "Field to write.",
        elsewhere="alias field into key name output path target to",
    )

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the constant."""
        return self.value_.constant

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Name it."""
        return Formula(code.constant(self.value_.constant, "constant"))
