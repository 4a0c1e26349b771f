"""The mapping that makes a text of a list."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from headrace.compiler.casts import CASTS, CastError
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Integer, Text
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.texttemplates import LONGEST_TEXT, TOO_LONG
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    OfField,
    as_option,
    default_option,
    expected,
    from_option,
)
from headrace.operators.separator import MOST_PARTS

_PARTS = 1_000
_MOST_DIGITS = 100
"""Of an integer, of which there may be many: one of 4,300 takes 230 µs."""
_MOST_BITS = (10**_MOST_DIGITS - 1).bit_length()
_ITEM, _CHARACTER, _FEW, _SHORT = 250, 2, 30, 10_000
"""Nanoseconds that it takes for an item, and for a character of the text; how few of them take too little
to be added up."""


class Join(OfField, tag="join", listed=100, elsewhere="implode join_strings"):
    """Makes a text of the strings in a list; a number or boolean is one as JSON writes it.

    Anything but a list of these fails the batch, null in it as well, and so does one with more items than
    `max`, an integer of more than 100 digits, or a text of more than 16 MiB.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the list.")
    with_: str = option(
        Text(), "What stands between two items.", elsewhere="by delimiter glue separator"
    )
    max: int = option(
        Integer(min=1, max=MOST_PARTS),
        f"Items that a list may have; at most {MOST_PARTS:,}.",
        default=_PARTS,
        elsewhere="limit max_items max_parts",
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def made(self, found: JsonValue) -> JsonValue:
        """Return the text."""
        items = expected(found, list, self.from_, "a list")
        if len(items) > self.max:
            raise BatchFailed(f"field '{self.from_}' has more than {self.max:,} items")
        texts = [self._text(item) for item in items]
        if sum(map(len, texts)) + len(self.with_) * (len(texts) - 1) > LONGEST_TEXT:
            raise BatchFailed(TOO_LONG)
        return self.with_.join(texts)

    def _text(self, item: JsonValue) -> str:
        try:
            if type(item) is int and item.bit_length() > _MOST_BITS:
                raise CastError(item, "text", f"at most {_MOST_DIGITS} digits")
            text: str = CASTS["text"](item)
        except CastError as cause:
            wanted = f"strings, numbers or booleans of at most {_MOST_DIGITS} digits"
            raise BatchFailed(
                f"field '{self.from_}' holds {json_type(item)}: expected {wanted}"
            ) from cause
        return text

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Join strings as they are, and call the plain form for others."""
        made, most, between = self.made, self.max, self.with_

        def joined(found: JsonValue) -> JsonValue:
            if found.__class__ is list and len(found) <= most:
                try:
                    if sum(map(len, found)) + len(between) * len(found) <= LONGEST_TEXT:
                        return between.join(found)
                except TypeError:  # numbers among them
                    pass
            return made(found)

        found = code.read(Path(self.from_), optional=optional)
        there = f"{found} is not None and " if optional else ""
        code.spend(f"{_ITEM} * len({found})", f"{there}len({found}) > {_FEW}")
        return replace(
            self.called(joined, code, optional),
            cost=f"{_CHARACTER} * len({{0}})",
            costs_if=f"len({{0}}) > {_SHORT}",
        )
