"""The key of a message: what a pipeline files it under in its bucket."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.compiler import jsontext
from headrace.compiler.buckets import WHOLE
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath, Missing


def text_of(value: JsonValue | Missing) -> str | None:
    """Return the key that a value stands for: a string itself, a number or boolean as JSON writes it.

    1 and 1.0 are two keys, 1 and "1" are one. Nothing else is a key: null, a list, an object.
    """
    if type(value) is str:
        return value
    return jsontext.text(value) if isinstance(value, bool | int | float) else None


@dataclass(frozen=True, slots=True)
class MessageKey:
    """What messages are filed under: the value of a field; without one, the bucket as a whole."""

    field: str | None = None

    @classmethod
    def in_pipeline(cls, ctx: Context) -> MessageKey:
        """Return what a pipeline files its messages under."""
        return cls(None if ctx.state is None else ctx.state.key)

    def of(self, message: JsonValue) -> str | None:
        """Return the key of a message, None if it has none."""
        return WHOLE if self.field is None else text_of(DottedPath(self.field).read(message))

    def source(self, code: Code) -> str:
        """Return an expression for the key of the message, None if it has none."""
        if self.field is None:
            return code.constant(WHOLE)
        value = code.read(DottedPath(self.field))
        other = f"{code.constant(text_of, 'text_of')}({value})"
        return f"{value} if {value}.__class__ is str else {other}"
