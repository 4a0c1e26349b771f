"""What becomes of the texts that a form finds: nothing, a value of a type, or the text itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.compiler.casts import CASTS, COMMA, CastError, float_with_comma
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.times.zones import Zone


class Mismatch(Exception):
    """A text does not fit. It says how, without content: ``1 part for 2 names``; or nothing."""


@dataclass(frozen=True)
class FieldValues:
    """The types of fields, by name, and the texts that stand for nothing.

    ``decimal`` is what stands before the decimals of a `float`, where that is no point; ``zone`` is that of
    times that tell none; None: UTC.
    """

    types: Mapping[str, str]
    nulls: frozenset[str]
    ctx: Context
    decimal: str = "."
    zone: Zone | None = None

    def of(self, name: str, text: str | None) -> JsonValue:
        """Return the value of a field.

        Raises: `Mismatch` where it will not convert.
        """
        if text is None or text in self.nulls:
            return None
        if name not in self.types:
            return text
        try:
            return self._cast(name)(text)
        except CastError as cause:
            raise Mismatch(f"'{name}': {cause}") from cause

    def source(self, name: str, text: str, code: Code, *, may_be_none: bool = False) -> str:
        """Return the same as source, of a text that is an expression; it raises `CastError` itself."""
        value = text
        if name in self.types:
            value = f"{code.constant(self._cast(name), self.types[name])}({text})"
        if len(self.nulls) == 1:
            test = f"{text} == {next(iter(self.nulls))!r}"
        else:
            test = f"{text} in {code.constant(self.nulls, 'nulls')}" if self.nulls else ""
        if may_be_none and name in self.types:
            test = f"{text} is None or {test}" if test else f"{text} is None"
        return f"None if {test} else {value}" if test else value

    def _cast(self, name: str) -> Callable[[str], JsonValue]:
        """Return the conversion of a field."""
        word = self.types[name]
        cast = CASTS[word]
        if word == "json":
            return lambda text: cast(text, self.ctx.decoding)
        if word == "float" and self.decimal == COMMA:
            return float_with_comma
        return cast
