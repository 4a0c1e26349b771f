"""New names of fields by their old ones, as a config spells them."""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.compiler.schema.fields import MessageField, Text, refused
from headrace.compiler.schema.structures import ObjectOf


class FieldNames(ObjectOf):
    """An object of dotted paths, each under another one."""

    names: ClassVar[Text] = MessageField()

    def __init__(self) -> None:
        super().__init__(MessageField(), noun="dotted path")

    def read(self, value: Any) -> dict[str, str]:
        """Take both without the blanks around them; an old one once."""
        found: dict[str, str] = super().read(value)
        named = {old.strip(): new for old, new in found.items()}
        if not named:
            said = "expected an object of at least one field, found an empty one"
            raise refused("out-of-range", said, expected="{ old: new }")
        if len(named) < len(found):
            said = "a field is named twice, once with blanks around it"
            raise refused("duplicate", said, expected="each old name once")
        return named
