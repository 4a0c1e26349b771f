"""The mapping that copies a field."""

from __future__ import annotations

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.dottedpaths import Missing
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import VariantOf
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import OfField, present


class Copy(OfField, tag="copy", listed=10, elsewhere="alias field get select"):
    """Copies a field."""

    from_: str = option(MessageField(), "Field to copy.", elsewhere="field key path source")
    as_: str | None = option(
        MessageField(),
        "Field to write; the last segment of `from` when absent.",
        default=None,
        elsewhere="alias into name output target to",
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when the field is missing.", default=None
    )

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the field."""
        return present(self.from_, message)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read it."""
        found = code.read(Path(self.from_), optional=optional)
        return Formula(found, [found])
