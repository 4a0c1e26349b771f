"""The form of a text whose parts stand in order, with something between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.compiler.code import Code
from headrace.compiler.schema.fields import Boolean
from headrace.compiler.schema.partnames import NameOrNull, named_twice
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.counting import counted
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.parsing.form import MOST_NAMES, InOrder, Insist
from headrace.operators.parsing.values import Mismatch
from headrace.operators.separator import Separator


class SplitForm(Record, InOrder):
    """Parts that stand in order, with something between them: as many as there are names."""

    word = "split"

    by: str = option(
        Separator(),
        "What stands between the parts; at most 20 characters.",
        elsewhere="delimiter on separator",
    )
    into: tuple[str | None, ...] = option(
        ListOf(NameOrNull(), at_least=1, at_most=MOST_NAMES),
        "What each part is called, in order; null leaves one out.",
        elsewhere="as columns fields names",
    )
    rest: bool = option(
        Boolean(),
        "Whether the last part has all that is left, with what stands between its parts.",
        default=False,
        elsewhere="remainder",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a name that stands twice, and no name at all."""
        yield from named_twice(self.into, "into")

    @property
    def parts(self) -> Sequence[str | None]:
        """The names, as they are given."""
        return self.into

    @property
    def _most(self) -> int:
        """How often it is cut: once more than there are names, to see that there is too much."""
        return len(self.into) - (1 if self.rest else 0)

    def cut(self, text: str) -> Sequence[str]:
        """Return the parts."""
        found = text.split(self.by)
        names = len(self.into)
        if self.rest and len(found) > names:
            found[names - 1 :] = [self.by.join(found[names - 1 :])]
        if len(found) != names:
            raise Mismatch(f"{counted(len(found), 'part')} for {counted(names, 'name')}")
        return found

    def cut_source(self, code: Code, text: str, demand: Insist) -> str:
        """Cut no more often than it has to be."""
        if not self._most:  # the rest is all of it
            return code.let(f"({text},)", "parts")
        parts = code.let(f"{text}.split({self.by!r}, {self._most})", "parts")
        demand(f"len({parts}) == {len(self.into)}")
        return parts
