"""The mapping that rounds a number, or leaves out its sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context as BuildContext
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, Integer
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import OfField, as_option, default_option, from_option

_MOST_DIGITS = 15
_ALL_DIGITS = Context(prec=400)
"""Enough for the largest double and 15 digits behind its point."""
_USUAL = 1e15
_ROUNDINGS = {"round": ROUND_HALF_UP, "floor": ROUND_FLOOR, "ceil": ROUND_CEILING}
_WHOLE: dict[str, Callable[[float], int]] = {"floor": math.floor, "ceil": math.ceil}


class NumberMapping(
    OfField, tag="number", listed=120, elsewhere="abs absolute ceil floor round truncate"
):
    """Rounds a number, or leaves out its sign. Integers stay what they are, but for the sign.

    What counts are the digits that JSON shows: with two digits, 0.285 is rounded to 0.29, though the double
    is a little less. Anything but a number fails the batch.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the number.")
    apply: tuple[str, ...] = option(
        ListOf(
            Choice(
                "abs",
                "round",
                "floor",
                "ceil",
                elsewhere={
                    "abs": "absolute",
                    "round": "nearest",
                    "floor": "down",
                    "ceil": "ceiling up",
                },
            ),
            at_least=1,
            at_most=4,
        ),
        "What to do, in order. `round` goes to the nearest, and from the middle away from zero.",
        elsewhere="change do functions operations to",
    )
    digits: int = option(
        Integer(max=_MOST_DIGITS),
        f"Digits behind the point that stay, at most {_MOST_DIGITS}. With 0 the result is an integer.",
        default=0,
        elsewhere="decimals places precision scale",
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def rules(self) -> Iterator[Fault]:
        """Refuse digits that nothing asks for."""
        if self.digits and {*self.apply} == {"abs"}:
            yield Fault(
                "conflict",
                "'digits' says nothing without round, floor or ceil",
                expected="one of them in 'apply', or no 'digits'",
                path=("digits",),
            )

    def made(self, found: JsonValue) -> JsonValue:
        """Return the number that it becomes, by way of its digits."""
        if type(found) not in NUMBERS:
            raise BatchFailed(f"field '{self.from_}' is {json_type(found)}: expected a number")
        for word in self.apply:
            if word == "abs":
                found = abs(found)
            elif type(found) is not int:
                found = self._rounded(found, _ROUNDINGS[word])
        return found

    def _rounded(self, number: float, rounding: str) -> float:
        """Return a double, rounded as it is written."""
        if number.is_integer():  # up to 309 digits, of which none can be in the way
            return number + 0.0 if self.digits else int(number)
        last = Decimal(1).scaleb(-self.digits)
        digits = Decimal(float.__repr__(number)).quantize(last, rounding, _ALL_DIGITS)
        return float(digits) + 0.0 if self.digits else int(digits)  # never -0.0

    def source(self, code: Code, ctx: BuildContext, *, optional: bool) -> Formula:
        """Call what looks at the digits only where the double might tell another number."""
        changes = [self._quick(word) for word in self.apply]
        if len(changes) == 1:
            return self.called(changes[0], code, optional)

        def changed(found: JsonValue) -> JsonValue:
            for change in changes:
                found = change(found)
            return found

        return self.called(changed, code, optional)

    def _quick(self, word: str) -> Callable[[JsonValue], JsonValue]:
        digits, exactly = self.digits, self._rounded
        whole = _WHOLE.get(word)
        rounding = _ROUNDINGS.get(word, "")

        def absolute(found: JsonValue) -> JsonValue:
            return abs(found) if type(found) in NUMBERS else self.made(found)

        def rounded(found: JsonValue) -> JsonValue:
            if found.__class__ is int:
                return found
            if type(found) not in NUMBERS:
                return self.made(found)
            if not -_USUAL < found < _USUAL:  # Python's own takes as long as there are digits
                return exactly(found, rounding)
            if word == "round":
                near = round(found, digits)
                # Only what ends with the digit behind the last one can lie in the middle.
                if near == found or round(found, digits + 1) != found:
                    return near + 0.0 if digits else int(near)
            elif not digits and whole is not None:
                return whole(found)
            return exactly(found, rounding)

        return absolute if word == "abs" else rounded
