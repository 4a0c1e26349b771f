"""Names of the parts of a text, in order: of its columns, of what a separator divides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.compiler.schema.fields import Identifier
from headrace.compiler.text.diagnostics import Fault, repeated


class NameOrNull(Identifier):
    """What a part is called, or null for one that is left out."""

    takes_null = True
    is_null_absent = False
    is_null_told = True
    noun = "name"
    type_name = "string | null"
    expects = "a name, or null"


def named_twice(names: Sequence[str | None], key: str) -> Iterator[Fault]:
    """Yield what is wrong with names of parts: one stands twice, or there is none."""
    given = [(name, (key, index)) for index, name in enumerate(names) if name is not None]
    yield from repeated(
        given, said="'{name}' is the name of {place} already", expected="each name once"
    )
    if not given:
        yield Fault(
            "missing-key",
            f"'{key}' has no name: every one is left out",
            expected="at least one name",
            path=(key,),
        )
