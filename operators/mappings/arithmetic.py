"""The mapping that calculates with two numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, MessageField
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.formula import Formula
from headrace.operators.literals import Operand
from headrace.operators.mappings.mapping import Writing, present

CODES: Codes = {
    "zero-divisor": "A division by a constant zero.",
}


_LARGEST = 1.7976931348623157e308


_DIGITS = 4300


_TOO_LARGE = 10**_DIGITS
"""Beyond any integer that JSON text may hold here. Multiplied with itself a few times more, an
integer is work for minutes."""


_IN_RANGE = f"-{_LARGEST} <= {{0}} <= {_LARGEST}"
"""The test that a number is finite: quicker than any other, and not a number fails it."""


_OPERATORS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": ("+", operator.add),
    "subtract": ("-", operator.sub),
    "multiply": ("*", operator.mul),
    "divide": ("/", operator.truediv),
    "modulo": ("%", operator.mod),
    "min": ("<", min),
    "max": (">", max),
}


_DIVIDING = ("divide", "modulo")


_OTHER_OPERATORS = {
    "add": "+ addition plus sum",
    "subtract": "- minus sub subtraction",
    "multiply": "* mul multiplication product times x",
    "divide": "/ div division over",
    "modulo": "% mod remainder",
    "min": "least lower minimum smaller",
    "max": "greater greatest maximum",
}


_NEVER_TIPS = 1e290
"""Less than half the distance between the two largest doubles: adding it cannot overflow."""


class Arithmetic(
    Writing, tag="arithmetic", listed=60, elsewhere="calculate calculation compute expression math"
):
    """Calculates with two numbers. Integers stay integers, but for `divide`, which gives a double.

    `modulo` is what is left of the left side when the right one has been taken from it as often as it fits,
    with the sign of the right side: -10 modulo 360 is 350. `min` and `max` are one of both, as it is.

    Anything but a number fails the batch, also where the other side is missing.
    """

    is_never_object = True

    left: Operand = option(VariantOf(Operand), "The left side.", elsewhere="a")
    operator: str = option(
        Choice(*_OPERATORS, elsewhere=_OTHER_OPERATORS),
        "What to do with them.",
        elsewhere="op operation",
    )
    right: Operand = option(VariantOf(Operand), "The right side.", elsewhere="b")
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a zero divisor that can be seen."""
        if self.operator in _DIVIDING and self.right.path is None and not self.right.constant:
            yield Fault(
                "zero-divisor",
                "cannot divide by zero",
                found=str(self.right.constant),
                expected="a number other than zero",
                path=("right", "value"),
            )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The fields among the operands."""
        sides = (("left", self.left), ("right", self.right))
        return [(side.path, (key, "field")) for key, side in sides if side.path is not None]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the result."""
        sides = (self.left, self.right)
        left, right = values = [
            side.constant if side.path is None else present(side.path, message) for side in sides
        ]
        for side, value in zip(sides, values, strict=True):
            if value is not MISSING and type(value) not in NUMBERS:
                raise BatchFailed(f"field '{side.path}' is {json_type(value)}: expected a number")
        if left is MISSING or right is MISSING:
            return MISSING
        if self.operator in _DIVIDING and not right:
            raise BatchFailed(f"field '{self.right.path}' is zero: nothing can be divided by it")
        try:
            result = _OPERATORS[self.operator][1](left, right)
        except OverflowError:  # an integer that no double holds, where one is needed
            result = math.inf
        if type(result) is float and not math.isfinite(result):
            wrong = "leaves the range of doubles"
        elif type(result) is int and not self._stays_in_range and abs(result) >= _TOO_LARGE:
            wrong = f"has more than {_DIGITS:,} digits"
        else:
            return result
        named = (str(each.constant) if each.path is None else f"'{each.path}'" for each in sides)
        raise BatchFailed(f"{self.operator} of {' and '.join(named)} {wrong}")

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Calculate; whatever is unusual is left to the plain form."""
        operands = (self.left, self.right)
        sides = [each.source(code, "operand", optional=optional) for each in operands]
        names = [name for name, each in zip(sides, operands, strict=True) if each.path is not None]
        different = [*dict.fromkeys(names)]
        apart = [f"({code.is_number(name)} or {name} is None)" for name in different]
        sign = _OPERATORS[self.operator][0]
        calculated = f"{sides[0]} {sign} {sides[1]}"
        if self.operator in ("min", "max"):  # of two that are equal it is the left one
            calculated = f"({sides[1]} if {sides[1]} {sign} {sides[0]} else {sides[0]})"
        return Formula(
            calculated,
            names,
            guard=" and ".join(map(code.is_number, different)),
            apart=" and ".join(apart) if len(different) > 1 else "",
            raises_on_none=True,
            within="" if self._stays_in_range else _IN_RANGE,
        )

    @property
    def _stays_in_range(self) -> bool:
        """Whether every finite double stays finite, if need be as one side is a constant."""
        if self.operator in ("modulo", "min", "max"):
            return True
        left: float | None = self.left.constant
        right: float | None = self.right.constant
        known = left if right is None else right
        if known is None:
            return False
        match self.operator:
            case "add" | "subtract":
                return abs(known) < _NEVER_TIPS
            case "multiply":
                return abs(known) <= 1
            case _:
                return right is not None and abs(right) >= 1
