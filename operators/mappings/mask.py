"""The mapping that shows a part of a text only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.fields import Integer, Text
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_CHANGED,
    OfField,
    as_option,
    converted,
    default_option,
    from_option,
    short,
)
from headrace.operators.separator import Separator

_MOST_KEPT = 1_000
_CHARACTER = 2
"""Nanoseconds that it takes for a character, where `keep_from` is looked for."""


class Mask(OfField, tag="mask", listed=140, elsewhere="anonymize hide obfuscate redact"):
    """Shows a part of a text, and always the same text in place of the rest, so its length is not told.

    Where nothing would be hidden, all of it is. A number or boolean is a text as JSON writes it; a list or
    an object fails the batch, and so does a text of more than 262,144 characters.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the text.")
    keep_start: int = option(
        Integer(max=_MOST_KEPT),
        "Characters at the start that show.",
        default=0,
        elsewhere="first prefix show_first start",
    )
    keep_end: int = option(
        Integer(max=_MOST_KEPT),
        "Characters at the end that show.",
        default=0,
        elsewhere="end last show_last suffix",
    )
    keep_from: str | None = option(
        Separator(),
        "Text from the last of which on all shows: `@` of an address, at most 20 characters. Where it is "
        "not there, nothing at the end shows.",
        default=None,
        elsewhere="from_text separator",
    )
    with_: str = option(
        Text(), "What shows in place of the rest.", default="***", elsewhere="char mask replacement"
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def rules(self) -> Iterator[Fault]:
        """Refuse two ways to say where the end begins."""
        if self.keep_from is not None and self.keep_end:
            yield Fault(
                "conflict",
                "'keep_from' and 'keep_end' both say what shows at the end",
                expected="one of them",
            )

    def made(self, found: JsonValue) -> JsonValue:
        """Return what shows."""
        text = converted(found, "text", self.from_)
        return self._masked(short(text, self.from_, LONGEST_CHANGED))

    def _masked(self, text: str) -> str:
        size, end = len(text), len(text) - self.keep_end
        if self.keep_from is not None and (end := text.rfind(self.keep_from)) < 0:
            end = size
        if self.keep_start >= end:  # nothing would be hidden
            return self.with_
        return text[: self.keep_start] + self.with_ + text[end:]

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Call the same with a string."""
        made, start, back, with_ = self.made, self.keep_start, self.keep_end, self.with_
        find = self.keep_from

        def masked(found: JsonValue) -> JsonValue:
            if found.__class__ is not str:
                return made(found)
            end = len(found) - back if find is None else found.rfind(find)
            if end < 0 and find is not None:
                end = len(found)
            return found[:start] + with_ + found[end:] if start < end else with_

        return self.called(masked, code, optional, nanoseconds=_CHARACTER, longest=LONGEST_CHANGED)
