"""The mapping that trims a text, or changes its case."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_CHANGED,
    OfField,
    as_option,
    default_option,
    from_option,
)

_CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "trim": ("strip", str.strip),
    "lower": ("lower", str.lower),
    "upper": ("upper", str.upper),
}
"""What can be done: the method of a string, by its name as well."""
_EACH = 13
"""Nanoseconds that one of them takes for a character, in any script."""


class TextMapping(
    OfField,
    tag="text",
    listed=110,
    elsewhere="downcase lower lowercase strip trim upcase upper uppercase",
):
    """Trims a text, or changes its case.

    Anything but a string fails the batch, and so does one of more than 262,144 characters.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the text.")
    apply: tuple[str, ...] = option(
        ListOf(
            Choice(
                *_CHANGES,
                elsewhere={
                    "trim": "strip",
                    "lower": "downcase lowercase",
                    "upper": "upcase uppercase",
                },
            ),
            at_least=1,
            at_most=len(_CHANGES),
        ),
        "What to do, in order. `trim` leaves out the blanks at both ends.",
        elsewhere="change do functions operations to",
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def made(self, found: JsonValue) -> JsonValue:
        """Return the text, changed."""
        text = self.string_in(found, LONGEST_CHANGED)
        for word in self.apply:
            text = _CHANGES[word][1](text)
        return text

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Call the methods of the string; nothing else has them."""
        found = code.read(Path(self.from_), optional=optional)
        calls = "".join(f".{_CHANGES[word][0]}()" for word in self.apply)
        cost = _EACH * len(self.apply)
        self.spend(code, found, cost, LONGEST_CHANGED, optional=optional)
        return Formula(f"{found}{calls}", [found], raises_on_none=True)
