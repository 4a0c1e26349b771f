"""The mapping that makes a list of a text."""

from __future__ import annotations

from typing import ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Boolean, Integer
from headrace.compiler.schema.records import option
from headrace.compiler.text.counting import counted
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_READ,
    OfField,
    as_option,
    default_option,
    from_option,
)
from headrace.operators.separator import MOST_PARTS, Separator

_PARTS = 1_000
_READ, _PART, _FEW = 3, 60, 30
"""Nanoseconds that it takes for a character, and for a part; parts that take too little to be added up."""


class Split(OfField, tag="split", listed=90, elsewhere="explode_text split_string tokenize"):
    """Makes a list of the parts of a text. An empty text has one part, which is empty as well.

    Anything but a string fails the batch, and so does one of more than 1,048,576 characters, or with more
    parts than `max`.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the text.")
    by: str = option(
        Separator(),
        "What stands between two parts; at most 20 characters.",
        elsewhere="delimiter on pattern separator",
    )
    trim: bool = option(
        Boolean(), "Whether blanks around each part are left out.", default=True, elsewhere="strip"
    )
    max: int = option(
        Integer(min=1, max=MOST_PARTS),
        f"Parts that a text may have; at most {MOST_PARTS:,}.",
        default=_PARTS,
        elsewhere="limit max_items max_parts",
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def made(self, found: JsonValue) -> JsonValue:
        """Return the parts."""
        parts = self.string_in(found, LONGEST_READ).split(self.by, self.max)
        if len(parts) > self.max:
            raise BatchFailed(f"field '{self.from_}' has more than {counted(self.max, 'part')}")
        return [part.strip() for part in parts] if self.trim else parts

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Split it; nothing but a string can be."""
        found = code.read(Path(self.from_), optional=optional)
        self.spend(code, found, _READ, LONGEST_READ, optional=optional)
        parts = f"{found}.split({code.constant(self.by, 'by')}, {self.max})"
        if self.trim:
            parts = f"[each.strip() for each in {parts}]"
        return Formula(
            parts,
            [found],
            raises_on_none=True,
            within=f"len({{0}}) <= {self.max}",
            cost=f"{_PART} * len({{0}})",
            costs_if=f"len({{0}}) > {min(self.max, _FEW)}",
        )
