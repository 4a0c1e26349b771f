"""A mapping as source: an expression, and when it stands for what the plain form says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.compiler.code import Code
from headrace.compiler.delivery import JsonValue


@dataclass(frozen=True, slots=True)
class Formula:
    """A mapping as source: the value of ``expression``, where none of ``names`` is None.

    The plain form has to speak where ``guard`` does not hold, and where ``within`` does not hold for the
    result, which is ``{0}`` there; where some names are None and others not, also where ``apart`` does
    not hold, which looks at each by itself. ``raises_on_none`` says that nobody has to look at the names
    first. ``cost`` is the nanoseconds that the result took, where ``costs_if`` holds for it, which it does
    wherever ``within`` does not.
    """

    expression: str
    names: Sequence[str] = ()
    guard: str = ""
    apart: str = ""
    raises_on_none: bool = False
    within: str = ""
    cost: str = ""
    costs_if: str = ""

    @property
    def there(self) -> str:
        """The condition that none of the names is None; empty if there are none."""
        return " and ".join(f"{name} is not None" for name in dict.fromkeys(self.names))

    @property
    def absent(self) -> str:
        """The condition that one of the names is None."""
        return " or ".join(f"{name} is None" for name in dict.fromkeys(self.names))

    def write(self, code: Code) -> str:
        """Write it for a place where none of the names is None; return the name of the value."""
        if self.guard:
            code.give_up_unless(self.guard)
        if self.expression.isidentifier():
            return self.expression
        value = code.let(self.expression, "value")
        self._look_at(value, "", code)
        if self.guard:
            code.know(code.is_number(value))  # calculated from numbers
        return value

    def check_apart(self, code: Code) -> bool:
        """Write the check of names of which some may be None; return whether there is one.

        Where none is, ``guard`` holds behind it.
        """
        if self.apart:
            code.give_up_unless(f"{self.guard or self.there} or {self.apart}")
        return bool(self.apart)

    def write_demanding(self, code: Code) -> str:
        """Write it, leaving it to the plain form to say that one of the names is None."""
        if self.there and not self.raises_on_none:
            code.give_up_unless(self.there)
        return self.write(code)

    def write_or(self, otherwise: JsonValue, code: Code) -> str:
        """Write it, with a constant in its place where one of the names is None."""
        if not self.there:
            return self.write(code)
        if not self.check_apart(code) and self.guard:
            code.give_up_unless(f"{self.guard} or {self.absent}")
        known = code.constant(otherwise, "default")
        value = code.let(f"{self.expression} if {self.there} else {known}", "value")
        self._look_at(value, self.there, code)
        return value

    def _look_at(self, value: str, there: str, code: Code) -> None:
        """Write what is asked of the result: whether it is one at all, and what it took."""
        within = self.within.format(value)
        if self.cost:
            costs_if = self.costs_if.format(value)
            where = f"{there} and {costs_if}" if there else costs_if
            code.spend(self.cost.format(value), where, within=within)
        elif within:
            code.give_up_unless(f"{self.absent} or {within}" if there else within)
