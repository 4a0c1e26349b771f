"""The seven kinds of mapping a `map` is made of.

Each says what it reads (`sources`), what it writes (`target`), gives its value for one message
(`value`, the plain truth) and writes the same as source (`source`). Null is missing for all of them;
what a missing field means is the map's policy, not theirs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import Decoding
from headrace.compiler.lowering.code import Code
from headrace.compiler.schema.fields import Choice, MessageField
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import Tagged, VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.casts import CASTS, OTHER_NAMES, CastError
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal, Operand, Part

CODES: Codes = {
    "zero-divisor": "A division by a constant zero.",
}

_LARGEST = 1.7976931348623157e308
_DIGITS = 4300
_TOO_LARGE = 10**_DIGITS
"""Beyond any integer that JSON text may hold here. Multiplied with itself a few times more, an
integer is work for minutes."""
_LONGEST = 16 * 1024 * 1024
"""Characters of a string that was joined, which is as much as a message that comes in may have.
Joined with itself a few times more, a string fills the memory."""

_IN_RANGE = f"-{_LARGEST} <= {{0}} <= {_LARGEST}"
"""The test that a number is finite: quicker than any other, and not a number fails it."""
_IS_SHORT = f"len({{0}}) <= {_LONGEST}"
"""The test that a string has not grown beyond what a message may be."""


def present(path: str, message: JsonValue) -> JsonValue | Missing:
    """Return the value of a field; null is missing."""
    found = Path(path).read(message)
    return MISSING if found is None else found


def converted(value: JsonValue, to: str, field: str, *by: Decoding) -> JsonValue:
    """Return the value of a field as another type; ``by`` is how JSON in it is decoded."""
    try:
        return CASTS[to](value, *by)
    except CastError as cause:
        raise BatchFailed(f"field '{field}': {cause}") from cause


class Mapping(Tagged):
    """Writes one field of the message, or drops some."""


class Writing(Mapping):
    """A mapping that writes one field."""

    is_never_object: ClassVar[bool] = False
    """Whether what it writes surely is no object, so that nothing can be written below it."""

    converts: ClassVar[bool] = False
    """Whether it takes values that may not convert, and fails their batch then."""

    needs_all: ClassVar[bool] = True
    """Whether it has no value where one of the fields that it reads is missing."""

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The paths it reads, each with where it is spelt."""
        return ()

    @property
    def sources(self) -> Sequence[str]:
        """The paths it reads."""
        return [path for path, _ in self.reads]

    @property
    def target(self) -> str:
        """The path it writes."""
        return getattr(self, "as_", None) or Path(self.sources[0]).segments[-1]

    @property
    def fallback(self) -> Literal | None:
        """What is written when a field is missing, before the map's policy is asked."""
        return getattr(self, "default", None)

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return what it writes for one message, or `MISSING`.

        Raises: `BatchFailed` if what is there is not what it takes.
        """
        raise NotImplementedError

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Write the same as source. ``optional``: a missing field is nothing unusual here."""
        raise NotImplementedError


class OfField(Writing):
    """A mapping that reads one field."""

    if TYPE_CHECKING:  # at run time it is an option of each variant
        from_: str

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The one field."""
        return [(self.from_, ("from",))]


class Copy(OfField, tag="copy", elsewhere="alias field get move rename select"):
    """Copies a field."""

    from_: str = option(MessageField(), "Field to copy.", elsewhere="field key path source")
    as_: str | None = option(
        MessageField(),
        "Field to write; the last segment of `from` when absent.",
        default=None,
        elsewhere="alias into name output target to",
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when the field is missing.", default=None
    )

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the field."""
        return present(self.from_, message)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read it."""
        found = code.read(Path(self.from_), optional=optional)
        return Formula(found, [found])


class Constant(Writing, tag="constant", elsewhere="add assign literal set text value"):
    """Writes a constant."""

    is_never_object = True

    value_: Literal = option(VariantOf(Literal), "What to write.")
    as_: str = option(
        MessageField(),
        "Field to write.",
        elsewhere="alias field into key name output path target to",
    )

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the constant."""
        return self.value_.constant

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Name it."""
        return Formula(code.constant(self.value_.constant, "constant"))


class Coalesce(Writing, tag="coalesce", elsewhere="fallback first first_of"):
    """Writes the first of several fields that is there."""

    from_: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=2),
        "Fields to try, in order.",
        elsewhere="field fields of sources",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when none of the fields is there.", default=None
    )

    needs_all = False

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """All of them."""
        return [(path, ("from", index)) for index, path in enumerate(self.from_)]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the first that is there."""
        found = (present(path, message) for path in self.from_)
        return next((value for value in found if value is not MISSING), MISSING)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read them all and take the first."""
        *before, last = [code.read(Path(path), optional=True) for path in self.from_]
        first = "".join(f"{name} if {name} is not None else " for name in before) + last
        name = code.let(first, "first")
        return Formula(name, [name])


class Cast(OfField, tag="cast", elsewhere="convert parse to_type"):
    """Converts a field; a value that will not convert fails the batch."""

    converts = True

    from_: str = option(MessageField(), "Field to convert.", elsewhere="field key path source")
    to: str = option(
        Choice(*CASTS, elsewhere=OTHER_NAMES),
        "Type to convert to.",
        elsewhere="as_type into_type kind",
    )
    as_: str | None = option(
        MessageField(),
        "Field to write; the last segment of `from` when absent.",
        default=None,
        elsewhere="alias into name output target",
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written, as it is, when the field is missing.", default=None
    )

    @property
    def is_never_object(self) -> bool:  # type: ignore[override]  # depends on the type
        """Only JSON text can hold an object."""
        return self.to != "json"

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the field, converted."""
        found = present(self.from_, message)
        by = self._by(ctx)
        return MISSING if found is MISSING else converted(found, self.to, self.from_, *by)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read it and call the conversion."""
        found = code.read(Path(self.from_), optional=optional)
        cast = code.constant(CASTS[self.to], self.to)
        arguments = [found, *(code.constant(each, "decoding") for each in self._by(ctx))]
        return Formula(f"{cast}({', '.join(arguments)})", [found], raises_on_none=True)

    def _by(self, ctx: Context) -> Sequence[Decoding]:
        """Return what the conversion needs besides the value: JSON is decoded as its pipeline does."""
        return (ctx.decoding,) if self.to == "json" else ()


class Concat(Writing, tag="concat", elsewhere="format interpolate join template"):
    """Joins strings; a number or boolean is one as JSON writes it.

    A list or an object fails the batch, also where another part is missing. Otherwise one missing part
    makes the whole value missing: `on_missing` says what that means, and by default the batch fails.
    """

    is_never_object = True

    parts: tuple[Part, ...] = option(
        ListOf(VariantOf(Part), at_least=1, noun="part"),
        "What to join, in order.",
        elsewhere="fields from values",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias into name output target to"
    )

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """The fields among the parts."""
        parts = enumerate(self.parts)
        return [(part.path, ("parts", at, "field")) for at, part in parts if part.path is not None]

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the parts, joined."""
        fields = {path: present(path, message) for path in self.sources}
        texts = {
            path: converted(found, "text", path)
            for path, found in fields.items()
            if found is not MISSING
        }
        if len(texts) < len(fields):
            return MISSING
        pieces = [part.constant if part.path is None else texts[part.path] for part in self.parts]
        if sum(map(len, pieces)) > _LONGEST:
            raise BatchFailed(f"the result is longer than {_LONGEST:,} characters")
        return "".join(pieces)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Add strings up; anything else has to become one first."""
        text, apart = code.constant(CASTS["text"], "text"), ""
        parts = [(each.source(code, "part", optional=optional), each.path) for each in self.parts]
        names = [name for name, path in parts if path is not None]
        if len(different := [*dict.fromkeys(names)]) > 1:
            apart = f"{code.constant(_are_texts, 'are_texts')}({', '.join(different)})"
        joined = " + ".join(
            name if path is None else f"({name} if {name}.__class__ is str else {text}({name}))"
            for name, path in parts
        )
        return Formula(joined, names, apart=apart, raises_on_none=True, within=_IS_SHORT)


def _are_texts(*values: JsonValue) -> bool:
    """Return whether every value that is there can be a text."""
    try:
        for value in values:
            if value is not None:
                CASTS["text"](value)
    except CastError:
        return False
    return True


_OPERATORS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": ("+", operator.add),
    "subtract": ("-", operator.sub),
    "multiply": ("*", operator.mul),
    "divide": ("/", operator.truediv),
}
_OTHER_OPERATORS = {
    "add": "+ addition plus sum",
    "subtract": "- minus sub subtraction",
    "multiply": "* mul multiplication product times x",
    "divide": "/ div division over",
}
_NEVER_TIPS = 1e290
"""Less than half the distance between the two largest doubles: adding it cannot overflow."""


class Arithmetic(
    Writing, tag="arithmetic", elsewhere="calculate calculation compute expression math"
):
    """Calculates with two numbers. Integers stay integers, but for `divide`, which gives a double.

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
        if self.operator == "divide" and self.right.path is None and not self.right.constant:
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
        if self.operator == "divide" and not right:
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
        return Formula(
            f"{sides[0]} {_OPERATORS[self.operator][0]} {sides[1]}",
            names,
            guard=" and ".join(map(code.is_number, different)),
            apart=" and ".join(apart) if len(different) > 1 else "",
            raises_on_none=True,
            within="" if self._stays_in_range else _IN_RANGE,
        )

    @property
    def _stays_in_range(self) -> bool:
        """Whether one side is a constant that keeps every finite double finite."""
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


class Drop(Mapping, tag="drop", elsewhere="del delete exclude remove unset"):
    """Removes fields. What is not there is no error; objects that become empty stay."""

    from_: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=1),
        "Fields to remove.",
        elsewhere="field fields keys path paths",
    )
