"""The mapping that takes the first field that is there."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import Writing, present


class Coalesce(Writing, tag="coalesce", listed=30, elsewhere="fallback first first_of"):
    """Writes the first of several fields that is there."""

    from_: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=2),
        "Fields to try, in order.",
        elsewhere="field fields of sources",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when none of the fields is there.", default=None
    )

    needs_all = False

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """All of them."""
        return [(path, ("from", index)) for index, path in enumerate(self.from_)]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the first that is there."""
        found = (present(path, message) for path in self.from_)
        return next((value for value in found if value is not MISSING), MISSING)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read them all and take the first."""
        *before, last = [code.read(Path(path), optional=True) for path in self.from_]
        first = "".join(f"{name} if {name} is not None else " for name in before) + last
        name = code.let(first, "first")
        return Formula(name, [name])
