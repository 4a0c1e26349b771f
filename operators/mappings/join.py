"""The mapping that makes a text of a list."""

from __future__ import annotations

from typing import ClassVar

from headrace.compiler.casts import CASTS, CastError
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Integer, Text
from headrace.compiler.schema.records import json_type, option
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_TEXT,
    OfField,
    as_option,
    default_option,
    expected,
    from_option,
)
from headrace.operators.separator import MOST_PARTS

_PARTS = 1_000


class Join(OfField, tag="join", listed=100, elsewhere="implode join_strings"):
    """Makes a text of the strings in a list; a number or boolean is one as JSON writes it.

    Anything but a list of these fails the batch, null in it as well, and so does one with more items than
    `max`, or a text of more than 16 MiB.
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
            raise BatchFailed(f"the result is longer than {LONGEST_TEXT:,} characters")
        return self.with_.join(texts)

    def _text(self, item: JsonValue) -> str:
        try:
            text: str = CASTS["text"](item)
        except CastError as cause:
            wanted = "strings, numbers or booleans of at most 4,300 digits"
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

        return self.called(joined, code, optional)
