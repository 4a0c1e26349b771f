"""Which failures of a component are of which class, and by which codes of the other side it knows them.

A component states it in one table, where the component is defined, and obeys that same table: what it looks
up is what `headrace explain`, the API and docs/delivery.md tell. Each row has a name,
``postgres.output.fails.undefined_table``, under which tests against the real server hold it; a row that no
test has tried says where it is documented.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headrace.compiler.errors import FailureClass

if TYPE_CHECKING:
    from headrace.compiler.component.families import Component

FailureCode: TypeAlias = "str | int"
"""What the other side, its driver or the system says: an SQLSTATE, a status, the name of an error."""


class FailureRow:
    """Failures of one cause.

    ``name`` is what the row is called in the names of what tests hold, ``what`` the cause as a clause,
    ``source`` the address of what documents it, where no test has tried it.
    """

    __slots__ = ("codes", "failure", "name", "source", "what")

    def __init__(
        self,
        name: str,
        failure: FailureClass,
        codes: Sequence[FailureCode],
        what: str,
        source: str = "",
    ) -> None:
        self.name, self.failure, self.codes = name, failure, tuple(codes)
        self.what, self.source = what, source

    @property
    def mark(self) -> str:
        """How it is known: ``tried`` against the other side, or only ``documented``."""
        return "documented" if self.source else "tried"


class FailureClasses:
    """The rows of one component, in the order of the classes."""

    def __init__(self, *rows: FailureRow) -> None:
        self.rows = rows
        self._classes = {code: row.failure for row in rows for code in row.codes}

    def __bool__(self) -> bool:
        return bool(self.rows)

    def of(self, *codes: FailureCode | None) -> FailureClass:
        """Return the class of what failed with one of ``codes``, the most exact first.

        What no row names is about the content.
        """
        found = (self._classes.get(code) for code in codes if code is not None)
        return next(filter(None, found), "invalid")

    def named(self, component: Component | type[Component]) -> Iterator[tuple[str, FailureRow]]:
        """Yield each row with the name under which tests hold it."""
        for row in self.rows:
            yield f"{component.kind}.{component.family}.fails.{row.name}", row
