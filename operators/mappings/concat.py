"""The mapping that joins strings."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.casts import CASTS, are_texts
from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Path as Place
from headrace.compiler.texttemplates import LONGEST_TEXT, TEXT_COST, TOO_LONG, text_within
from headrace.operators.formula import Formula
from headrace.operators.literals import Part
from headrace.operators.mappings.mapping import Writing, converted, present

# Joined with itself a few times more, a string fills the memory.
_IS_SHORT = f"len({{0}}) <= {LONGEST_TEXT}"
"""The test that a string has not grown beyond what a message may be."""
_FEW = 4
"""Parts that are added up one by one."""


class Concat(Writing, tag="concat", listed=50):
    """Joins strings; a number or boolean is one as JSON writes it.

    A list or an object fails the batch, also where another part is missing. Otherwise one missing part
    makes the whole value missing: `on_missing` says what that means, and by default the batch fails.
    """

    is_never_object = True

    parts: tuple[Part, ...] = option(
        ListOf(VariantOf(Part), at_least=1, noun="part"),
        "What to join, in order.",
        elsewhere="fields from values",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The fields among the parts."""
        parts = enumerate(self.parts)
        return [(part.path, ("parts", at, "field")) for at, part in parts if part.path is not None]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the parts, joined."""
        fields = {path: present(path, message) for path in self.sources}
        texts = {
            path: converted(found, "text", path)
            for path, found in fields.items()
            if found is not MISSING
        }
        if len(texts) < len(fields):
            return MISSING
        pieces = [part.constant if part.path is None else texts[part.path] for part in self.parts]
        if sum(map(len, pieces)) > LONGEST_TEXT:
            raise BatchFailed(TOO_LONG)
        return "".join(pieces)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Add strings up; anything else has to become one first."""
        text, apart = code.constant(CASTS["text"], "text"), ""
        parts = [(each.source(code, "part", optional=optional), each.path) for each in self.parts]
        names = [name for name, path in parts if path is not None]
        if len(different := [*dict.fromkeys(names)]) > 1:
            apart = f"{code.constant(are_texts, 'are_texts')}({', '.join(different)})"
        is_text = "{0}.__class__ is str"
        if len(parts) > _FEW and len(names) > len(different):  # it may grow before it is looked at
            most = LONGEST_TEXT // len(parts)
            text = code.constant(text_within(most), "text")
            is_text += f" and len({{0}}) <= {most}"
        texts = [
            name if path is None else f"({name} if {is_text.format(name)} else {text}({name}))"
            for name, path in parts
        ]
        # Added up, the first one is copied once for each.
        joined = f"''.join(({', '.join(texts)}))" if len(parts) > _FEW else " + ".join(texts)
        return Formula(
            joined,
            names,
            apart=apart,
            raises_on_none=True,
            within=_IS_SHORT,
            cost=f"{TEXT_COST} * len({{0}})",
            costs_if=f"len({{0}}) > {USUAL}",
        )
