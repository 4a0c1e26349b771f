"""Names of fields, and what stands between texts, as the forms spell them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.compiler.schema.fields import Identifier, Text, refused
from headrace.compiler.text.diagnostics import Fault, repeated, shown


class NameOrNull(Identifier):
    """What a part is called, or null for one that is left out."""

    takes_null = True
    is_null_absent = False
    noun = "name"
    type_name = "string | null"
    expects = "a name, or null"


class SeparatorText(Text):
    """What stands between two parts: something, also blanks."""

    expects = "a string of at least one character"

    def read(self, value: Any) -> Any:
        """Take a string that is not empty."""
        text: str = super().read(value)
        if not text:
            raise refused("blank", "this must not be empty", found=value, expected=self.expects)
        return text


class SeparatorCharacter(Text):
    """One character between cells."""

    expects = "one character that is no quote and ends no line"

    def read(self, value: Any) -> Any:
        """Take one that a reader of CSV can tell from the others."""
        text: str = super().read(value)
        if len(text) != 1 or text in '"\r\n\0':
            said = f"expected {self.expects}, found {shown(text)}"
            raise refused("out-of-range", said, found=value, expected=self.expects)
        return text


def named_twice(names: Sequence[str | None], key: str) -> Iterator[Fault]:
    """Yield what is wrong with names of parts: one stands twice, or there is none."""
    given = [(name, (key, index)) for index, name in enumerate(names) if name is not None]
    yield from repeated(
        given, said="'{name}' is the name of {place} already", expected="each name once"
    )
    if not given:
        yield Fault(
            "missing-key",
            f"'{key}' has no name, so nothing would be written",
            expected="at least one name",
            path=(key,),
        )
