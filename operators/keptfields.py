"""What a `map` under ``keep: mapped`` keeps, as generated source: an object of what its mappings wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from headrace.compiler.code import Code
from headrace.compiler.dottedpaths import DottedPath


class WrittenField(NamedTuple):
    """What a mapping wrote, as source, or dropped again."""

    target: DottedPath
    value: str | None
    """The name of the value; None: what was written there is dropped."""
    condition: str = ""
    """When; empty for always."""

    def where(self, condition: str) -> Self:
        """Return the same under a condition."""
        return self._replace(condition=condition)

    def put_in(self, made: str, code: Code) -> str:
        """Return the statement that does it to an object."""
        name, value = self.target.text, self.value
        if self.target.is_plain:
            return f"{made}[{name!r}] = {value}" if value else f"{made}.pop({name!r}, None)"
        path = code.constant(self.target, "path")
        return f"{made} = {path}." + (f"write({made}, {value})" if value else f"remove({made})")


class ChangedFields(NamedTuple):
    """What a mapping does to all that was written before it."""

    function: str
    """The name of what is called with the object, and returns another one."""
    arguments: Sequence[str] = ()
    """What else it is called with, as source."""
    condition: str = ""
    cost: tuple[str, str] = ("", "")
    """The nanoseconds that it took, and where they are to be added up (`Code.spend`), with `{0}` for the
    object."""

    def where(self, condition: str) -> Self:
        """Return the same under a condition."""
        return self._replace(condition=condition)

    def put_in(self, made: str, code: Code) -> str:
        """Return the statement that does it to an object."""
        return f"{made} = {self.function}({', '.join([made, *self.arguments])})"


Kept = WrittenField | ChangedFields


def replace_by(kept: Sequence[Kept], code: Code) -> None:
    """Put an object with all that was written in the place of the message."""
    fields = [each for each in kept if isinstance(each, WrittenField)]
    values = {each.target.segments: each.value for each in fields if each.value is not None}
    is_nested = any(each[:end] in values for each in values for end in range(1, len(each)))
    is_simple = len(fields) == len(kept) and all(
        each.value and not each.condition for each in fields
    )
    if is_simple and not is_nested:
        code.replace(_display(values))
        return
    made = code.let("{}", "made")
    for each in kept:
        done = each.put_in(made, code)
        code.line(f"if {each.condition}: {done}" if each.condition else done)
        if isinstance(each, ChangedFields) and each.cost[0]:
            code.spend(*(said.format(made) for said in each.cost))
    code.replace(made)


def _display(values: dict[tuple[str, ...], str]) -> str:
    """Return the source of an object that has these values at these segments."""
    below: dict[str, dict[tuple[str, ...], str]] = {}
    for segments, value in values.items():
        below.setdefault(segments[0], {})[segments[1:]] = value
    members = (f"{key!r}: {inner.get(()) or _display(inner)}" for key, inner in below.items())
    return "{" + ", ".join(members) + "}"
