"""What a form of texts is: it has names, and takes a text apart into fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.operators.parsing.values import FieldValues

MOST_NAMES = 1000
"""Fields that a text is taken apart into, whether a config names them or the text does."""

SOME, MANY = 50_000, 2_000_000
"""Characters that are taken apart in some milliseconds: where each may be a field, and where few are."""
_FEW_NAMES = 20
_MOST_WRITTEN = 100
"""Fields of which each is written as source: Python takes 60 µs to compile a line, and everybody waits."""

Fields = Mapping[str, JsonValue]
Insist = Callable[[str], None]
"""Writes what becomes of a text that does not fit, unless a condition holds."""


class TextForm:
    """One way to take a text apart."""

    word: str
    """What it is called where a text does not fit it, as its config spells it."""
    knows_types: ClassVar[bool] = False
    """Whether its fields have types of their own, so that none can be given."""
    tells_no_zone: ClassVar[bool] = False
    """Whether it has times of which the text does not tell the zone."""
    usual_nulls: ClassVar[tuple[str, ...]] = ()
    """Texts that stand for nothing where the config does not say."""

    @property
    def takes_milliseconds(self) -> bool:
        """Whether one text may, however short it is."""
        return False

    @property
    def longest(self) -> int | None:
        """Bytes of UTF-8 of the longest text that it looks at; None: any."""
        return None

    @property
    def at_once(self) -> int:
        """Characters of a batch that are taken apart at once, whatever they are: some milliseconds."""
        return SOME

    @property
    def names(self) -> Sequence[str] | None:
        """The fields that it makes of every text, in order; None: the text names them."""
        return None

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what takes a text apart: the plain truth. It raises `Mismatch`."""
        raise NotImplementedError

    def may_raise(self, values: FieldValues) -> bool:
        """Return whether its source may raise for a text that does not fit."""
        return True

    def source(
        self, code: Code, text: str, values: FieldValues, ctx: Context, demand: Insist
    ) -> Mapping[str, str] | str:
        """Write the same as source; return a name for each field, or one for an object that has them.

        It may raise what the reader raises, and `CastError`.
        """
        return code.let(f"{code.constant(self.reader(values, ctx), 'read')}({text})", "fields")


class InOrder(TextForm):
    """A form that finds one text after the other, and knows what each is called."""

    @property
    def parts(self) -> Sequence[str | None]:
        """What each is called, in order; None: it is left out."""
        raise NotImplementedError

    @property
    def at_once(self) -> int:
        """Many, if they make few fields."""
        return MANY if len(self.parts) <= _FEW_NAMES else SOME

    @property
    def names(self) -> Sequence[str]:
        """The fields that it makes of every text, in order."""
        return [name for name in self.parts if name is not None]

    def cut(self, text: str) -> Sequence[str | None]:
        """Return as many texts as there are parts; None: it is not there.

        Raises: `Mismatch`
        """
        raise NotImplementedError

    def cut_source(self, code: Code, text: str, demand: Insist) -> str:
        """Write the same as source; return the name of what can be asked for each by its index."""
        raise NotImplementedError

    def may_be_none(self, index: int) -> bool:
        """Return whether the text at a place may be missing though the whole fits."""
        return False

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what cuts, and gives each text its value."""

        def read(text: str) -> Fields:
            cut = zip(self.parts, self.cut(text), strict=True)
            return {name: values.of(name, part) for name, part in cut if name is not None}

        return read

    def may_raise(self, values: FieldValues) -> bool:
        """Return whether one of the values may not convert, or it is not written as source."""
        is_read = len(self.parts) > _MOST_WRITTEN
        return is_read or not values.types.keys().isdisjoint(self.names)

    def source(
        self, code: Code, text: str, values: FieldValues, ctx: Context, demand: Insist
    ) -> Mapping[str, str] | str:
        """Write the cut, then the values; of very many fields nothing but a call of the reader."""
        if len(self.parts) > _MOST_WRITTEN:
            return super().source(code, text, values, ctx, demand)
        cut = self.cut_source(code, text, demand)
        return {
            name: code.let(
                values.source(name, f"{cut}[{index}]", code, may_be_none=self.may_be_none(index)),
                name,
            )
            for index, name in enumerate(self.parts)
            if name is not None
        }
