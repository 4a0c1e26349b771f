"""Fitting: what a cell of a table is, whatever its type.

Every rule of a type is written twice. `Cell.one` is the plain truth, for one value. `Cell.usual` is the
same for a whole column at the speed of C, for values as they usually are; it may give up on any other,
by raising whatever it likes, but it never takes what `one` refuses, and never hands on something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.compiler.delivery import JsonValue


class Misfit(ValueError):
    """A value does not fit a column. The text names types and rules only: no value, so that all that
    is wrong in the same way is counted as one failure."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found}")


class Unusual(Exception):
    """The fast way met what it was not written for: the plain one has to decide."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One type of column, for one database. Values are checked, never coerced.

    - ``kinds``: the Python types that its values can have; None: any.
    - ``one``: returns what the driver is handed for one value, or raises `Misfit`.
    - ``usual``: the same for a column of values of these kinds, handed the kinds that are among them.
      None: such values go over as they are.
    """

    kinds: frozenset[type] | None
    one: Callable[[JsonValue], Any]
    usual: Callable[[list[Any], set[type]], list[Any]] | None

    def many(self, values: list[Any], kinds: set[type]) -> list[Any]:
        """Return what the driver is handed for a column without nulls, if it is a usual one.

        Raises:
            Exception: of any class; then `one` has to decide, value by value.
        """
        if self.kinds is not None and not kinds <= self.kinds:
            raise Unusual
        return values if self.usual is None else self.usual(values, kinds)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a column of a table that is there asks of its values, beside what their type does.

    ``fits`` is handed what the driver would be, without nulls, and tells whether the table keeps all of
    it as it is. The other two say what is wrong with one that it does not keep.
    """

    fits: Callable[[list[Any]], bool]
    expected: str
    found: str

    def within(self, cell: Cell) -> Cell:
        """Return a cell that takes what fits only."""

        def one(value: JsonValue) -> Any:
            handed = cell.one(value)
            if not self.fits([handed]):
                raise Misfit(self.expected, self.found)
            return handed

        def usual(values: list[Any], kinds: set[type]) -> list[Any]:
            handed = cell.many(values, kinds)
            if not self.fits(handed):
                raise Unusual
            return handed

        return Cell(cell.kinds, one, usual)


def shapes(values: list[str], table: Mapping[int, int | str]) -> set[str]:
    """Return what values look like when one character stands for all of its sort.

    Four times as fast as a pattern for every value: there are few shapes, often one.
    """
    looks = "\n".join(values).translate(table).split("\n")
    if len(looks) != len(values):
        raise Unusual
    return set(looks)
