"""Constants, operands and parts as a `map` spells them: objects tagged by `type`."""

from __future__ import annotations

from headrace.compiler.code import Code
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.schema.fields import Boolean, MessageField, Number, Text
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged


class Literal(Tagged):
    """A constant."""

    @property
    def constant(self) -> JsonValue:
        """The value it stands for."""
        return getattr(self, "value", None)


class TextLiteral(Literal, tag="text", elsewhere="str string"):
    """A string."""

    value: str = option(Text(), "The string.")


class NumberLiteral(Literal, tag="number", elsewhere="double float int integer"):
    """A number, written as it is spelled: 5 stays 5."""

    value: float = option(Number(), "The number.")


class BooleanLiteral(Literal, tag="boolean", elsewhere="bool"):
    """A boolean."""

    value: bool = option(Boolean(), "The boolean.")


class NullLiteral(Literal, tag="null", elsewhere="nil none"):
    """Null."""


class _FieldOrConstant:
    """What is either read from a field or known now."""

    @property
    def path(self) -> str | None:
        """The field it is read from; None for a constant."""
        return getattr(self, "field", None)

    @property
    def constant(self) -> JsonValue:
        """The constant, if it is one."""
        return getattr(self, "value", None)

    def source(self, code: Code, hint: str, *, optional: bool) -> str:
        """Return a name for it, or the constant as source; ``hint`` is for its name."""
        if self.path is None:
            return code.constant(self.constant, hint)
        return code.read(DottedPath(self.path), optional=optional)


class Operand(_FieldOrConstant, Tagged):
    """One side of an arithmetic mapping."""


class FieldOperand(Operand, tag="field", elsewhere="column path"):
    """The number in a field."""

    field: str = option(MessageField(), "Field that holds the number.", elsewhere="column path")


class ValueOperand(Operand, tag="value", elsewhere="constant literal number"):
    """A number."""

    value: float = option(Number(), "The number.", elsewhere="number")


class Part(_FieldOrConstant, Tagged):
    """One part of a concatenation."""


class FieldPart(Part, tag="field", elsewhere="column path"):
    """A field: a string as it is, a number or boolean as JSON writes it."""

    field: str = option(MessageField(), "Field that holds the part.", elsewhere="column path")


class ValuePart(Part, tag="value", elsewhere="constant literal string text"):
    """A string."""

    value: str = option(Text(), "The string.", elsewhere="text")


class ValueOrField(_FieldOrConstant, Tagged):
    """A constant, or what is in a field."""


class FieldValue(ValueOrField, tag="field", elsewhere="column path"):
    """The value of a field, as it is."""

    field: str = option(MessageField(), "Field to read.", elsewhere="column path")


class TextValue(ValueOrField, tag="text", elsewhere="str string"):
    """A string."""

    value: str = option(Text(), "The string.")


class NumberValue(ValueOrField, tag="number", elsewhere="double float int integer"):
    """A number, written as it is spelled: 5 stays 5."""

    value: float = option(Number(), "The number.")


class BooleanValue(ValueOrField, tag="boolean", elsewhere="bool"):
    """A boolean."""

    value: bool = option(Boolean(), "The boolean.")


class NullValue(ValueOrField, tag="null", elsewhere="nil none"):
    """Null."""
