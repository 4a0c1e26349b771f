"""The seven kinds of mapping a `map` is made of.

Each says what it reads (`sources`), what it writes (`target`), gives its value for one message
(`value`, the plain truth) and writes the same as source (`source`). Null is missing for all of them;
what a missing field means is the map's policy, not theirs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.fields import Choice, DottedPath, ListOf, Tagged, VariantOf
from headrace.compiler.language.records import json_type, option
from headrace.compiler.lowering.paths import MISSING, Missing
from headrace.compiler.lowering.paths import DottedPath as Path
from headrace.operators.casts import CASTS, CastError
from headrace.operators.literals import (
    FieldOperand,
    FieldPart,
    Literal,
    Operand,
    Part,
    ValueOperand,
    ValuePart,
)

if TYPE_CHECKING:
    from headrace.compiler.lowering.code import Code

_LARGEST = 1.7976931348623157e308


def present(path: str, message: JsonValue) -> JsonValue | Missing:
    """Return the value of a field; null is missing."""
    found = Path(path).read(message)
    return MISSING if found is None else found


def converted(value: JsonValue, to: str, field: str) -> JsonValue:
    """Return the value of a field as another type."""
    try:
        return CASTS[to](value)
    except CastError as cause:
        raise BatchFailed(f"field '{field}': {cause}") from cause


@dataclass(frozen=True, slots=True)
class Formula:
    """A mapping as source: the value of ``expression``, where none of ``names`` is None.

    The plain form has to speak where ``guard`` does not hold, and where the result is out of range
    if it ``may_overflow``. ``raises_on_none`` says that nobody has to look at the names first.
    """

    expression: str
    names: Sequence[str] = ()
    guard: str = ""
    raises_on_none: bool = False
    may_overflow: bool = False

    @property
    def there(self) -> str:
        """The condition that none of the names is None; empty if there are none."""
        return " and ".join(f"{name} is not None" for name in self.names)

    def write(self, code: Code) -> str:
        """Write it for a place where none of the names is None; return the name of the value."""
        if self.guard:
            code.give_up_unless(self.guard)
        if self.expression.isidentifier():
            return self.expression
        value = code.let(self.expression, "value")
        if self.may_overflow:
            code.give_up_unless(_in_range(value))
        return value

    def write_demanding(self, code: Code) -> str:
        """Write it, leaving it to the plain form to say that one of the names is None."""
        if self.there and not self.raises_on_none:
            code.give_up_unless(self.there)
        return self.write(code)

    def write_or(self, otherwise: JsonValue, code: Code) -> str:
        """Write it, with a constant in its place where one of the names is None."""
        if not self.there:
            return self.write(code)
        absent = " or ".join(f"{name} is None" for name in self.names)
        if self.guard:
            code.give_up_unless(f"{self.guard} or {absent}")
        known = code.constant(otherwise, "default")
        value = code.let(f"{self.expression} if {self.there} else {known}", "value")
        if self.may_overflow:
            code.give_up_unless(f"{absent} or {_in_range(value)}")
        return value


def _in_range(name: str) -> str:
    """Return the test that a number is finite: quicker than any other, and not a number fails it."""
    return f"-{_LARGEST} <= {name} <= {_LARGEST}"


class Mapping(Tagged):
    """Writes one field of the message, or drops some."""

    is_never_object: ClassVar[bool] = False
    """Whether what it writes surely is no object, so that nothing can be written below it."""

    @property
    def target(self) -> str | None:
        """The path it writes; None when it writes nothing."""
        return getattr(self, "as_", None) or Path(self.sources[0]).segments[-1]

    @property
    def sources(self) -> Sequence[str]:
        """The paths it reads."""
        return ()

    @property
    def fallback(self) -> Literal | None:
        """What is written when a field is missing, before the map's policy is asked."""
        return getattr(self, "default", None)

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return what it writes for one message, or `MISSING`.

        Raises: `BatchFailed` if what is there is not what it takes.
        """
        raise NotImplementedError

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Write the same as source. ``optional``: a missing field is nothing unusual here."""
        raise NotImplementedError


class Copy(Mapping, tag="copy"):
    """Copies a field."""

    from_: str = option(DottedPath(), "Field to copy.")
    as_: str | None = option(
        DottedPath(), "Field to write; the last segment of `from` when absent.", default=None
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when the field is missing.", default=None
    )

    @property
    def sources(self) -> Sequence[str]:
        """The one field."""
        return (self.from_,)

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the field."""
        return present(self.from_, message)

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Read it."""
        found = code.read(Path(self.from_), optional=optional)
        return Formula(found, [found])


class Constant(Mapping, tag="constant"):
    """Writes a constant."""

    is_never_object = True

    value_: Literal = option(VariantOf(Literal), "What to write.")
    as_: str = option(DottedPath(), "Field to write.")

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the constant."""
        return self.value_.constant

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Name it."""
        return Formula(code.constant(self.value_.constant, "constant"))


class Coalesce(Mapping, tag="coalesce"):
    """Writes the first of several fields that is there."""

    from_: tuple[str, ...] = option(ListOf(DottedPath(), at_least=2), "Fields to try, in order.")
    as_: str = option(DottedPath(), "Field to write.")
    default: Literal | None = option(
        VariantOf(Literal), "Written when none of the fields is there.", default=None
    )

    @property
    def sources(self) -> Sequence[str]:
        """All of them."""
        return self.from_

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the first that is there."""
        found = (present(path, message) for path in self.from_)
        return next((value for value in found if value is not MISSING), MISSING)

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Read them all and take the first."""
        *before, last = [code.read(Path(path), optional=True) for path in self.from_]
        first = "".join(f"{name} if {name} is not None else " for name in before) + last
        name = code.let(first, "first")
        return Formula(name, [name])


class Cast(Mapping, tag="cast"):
    """Converts a field; a value that will not convert fails the batch."""

    from_: str = option(DottedPath(), "Field to convert.")
    to: str = option(Choice(*CASTS), "Type to convert to.")
    as_: str | None = option(
        DottedPath(), "Field to write; the last segment of `from` when absent.", default=None
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written, as it is, when the field is missing.", default=None
    )

    @property
    def is_never_object(self) -> bool:  # type: ignore[override]  # depends on the type
        """Only JSON text can hold an object."""
        return self.to != "json"

    @property
    def sources(self) -> Sequence[str]:
        """The one field."""
        return (self.from_,)

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the field, converted."""
        found = present(self.from_, message)
        return MISSING if found is MISSING else converted(found, self.to, self.from_)

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Read it and call the conversion."""
        found = code.read(Path(self.from_), optional=optional)
        cast = code.constant(CASTS[self.to], self.to)
        return Formula(f"{cast}({found})", [found], raises_on_none=True)


class Concat(Mapping, tag="concat"):
    """Joins strings. A missing part makes the whole value missing."""

    is_never_object = True

    parts: tuple[Part, ...] = option(
        ListOf(VariantOf(Part), at_least=1, noun="part"), "What to join, in order."
    )
    as_: str = option(DottedPath(), "Field to write.")

    @property
    def sources(self) -> Sequence[str]:
        """The fields among the parts."""
        return [part.field for part in self.parts if isinstance(part, FieldPart)]

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the parts, joined."""
        fields = {path: present(path, message) for path in self.sources}
        if MISSING in fields.values():
            return MISSING
        texts = {path: converted(found, "text", path) for path, found in fields.items()}
        return "".join(
            texts[part.field] if isinstance(part, FieldPart) else part.constant
            for part in self.parts
        )

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Add strings up; anything else has to be made one."""
        names, pieces, text = [], [], code.constant(CASTS["text"], "text")
        for part in self.parts:
            if isinstance(part, FieldPart):
                name = code.read(Path(part.field), optional=optional)
                names.append(name)
                pieces.append(f"({name} if {name}.__class__ is str else {text}({name}))")
            else:
                pieces.append(code.constant(part.constant, "part"))
        return Formula(" + ".join(pieces), names, raises_on_none=True)


_OPERATORS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": ("+", operator.add),
    "subtract": ("-", operator.sub),
    "multiply": ("*", operator.mul),
    "divide": ("/", operator.truediv),
}
_NEVER_TIPS = 1e290
"""Less than half the distance between the two largest doubles: adding it cannot overflow."""


class Arithmetic(Mapping, tag="arithmetic"):
    """Calculates with two numbers. Integers stay integers, but for `divide`, which gives a double."""

    is_never_object = True

    left: Operand = option(VariantOf(Operand), "The left side.")
    operator: str = option(Choice(*_OPERATORS), "What to do with them.")
    right: Operand = option(VariantOf(Operand), "The right side.")
    as_: str = option(DottedPath(), "Field to write.")

    def rules(self) -> Iterator[Fault]:
        """Refuse a zero divisor that can be seen."""
        if (
            self.operator == "divide"
            and isinstance(self.right, ValueOperand)
            and not self.right.value
        ):
            yield Fault(
                "zero-divisor",
                "cannot divide by zero",
                found=str(self.right.value),
                expected="a number other than zero",
                path=("right", "value"),
            )

    @property
    def sources(self) -> Sequence[str]:
        """The fields among the operands."""
        return [side.field for side in (self.left, self.right) if isinstance(side, FieldOperand)]

    def value(self, message: JsonValue) -> JsonValue | Missing:
        """Return the result."""
        left, right = self._side(self.left, message), self._side(self.right, message)
        if left is MISSING or right is MISSING:
            return MISSING
        for side, value in ((self.left, left), (self.right, right)):
            if type(value) not in (int, float):
                name = getattr(side, "field", "")
                raise BatchFailed(f"'{name}' holds {kind_of(value)}: expected a number")
        if self.operator == "divide" and not right:
            raise BatchFailed("division by zero")
        try:
            result = _OPERATORS[self.operator][1](left, right)
        except OverflowError:
            result = math.inf
        if type(result) is float and not math.isfinite(result):
            raise BatchFailed(f"the result of {self.operator} is out of range")
        return result

    def source(self, code: Code, *, optional: bool) -> Formula:
        """Calculate; whatever is unusual is left to the plain form."""
        names, sides = [], []
        for side in (self.left, self.right):
            if isinstance(side, FieldOperand):
                names.append(code.read(Path(side.field), optional=optional))
                sides.append(names[-1])
            elif isinstance(side, ValueOperand):
                sides.append(code.constant(side.value, "operand"))
        result = f"{sides[0]} {_OPERATORS[self.operator][0]} {sides[1]}"
        guard = " and ".join(code.is_number(name) for name in names)
        return Formula(names, result, guard, must_be_finite=not self._cannot_overflow)

    @property
    def _cannot_overflow(self) -> bool:
        """Whether one side is a constant that keeps every finite double finite."""
        sides = [side.value for side in (self.left, self.right) if isinstance(side, ValueOperand)]
        if not sides:
            return False
        if self.operator in ("add", "subtract"):
            return abs(sides[0]) < _NEVER_TIPS
        if self.operator == "multiply":
            return abs(sides[0]) <= 1
        return isinstance(self.right, ValueOperand) and abs(sides[-1]) >= 1

    @staticmethod
    def _side(side: Operand, message: JsonValue) -> JsonValue | Missing:
        if isinstance(side, FieldOperand):
            return present(side.field, message)
        assert isinstance(side, ValueOperand)
        return side.value


class Drop(Mapping, tag="drop"):
    """Removes fields. What is not there is no error; objects that become empty stay."""

    from_: tuple[str, ...] = option(ListOf(DottedPath(), at_least=1), "Fields to remove.")

    @property
    def target(self) -> str | None:
        """It writes nothing."""
        return None
