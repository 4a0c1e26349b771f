"""Frozen objects whose methods are written once: what `dataclass` would generate, anew for each class.

Source: `docs/decisions/starting.md`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from reprlib import recursive_repr
from typing import Any, NoReturn


class Frozen:
    """A dataclass with keyword arguments alone, equal to those of its class that hold the same.

    Source: https://docs.python.org/3/library/dataclasses.html (``frozen`` and ``kw_only``).
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)

    def __init__(self, **values: Any) -> None:
        missing = []
        for each in fields_of(type(self)):
            if each.name in values:
                value = values.pop(each.name)
            elif each.default is not dataclasses.MISSING:
                value = each.default
            else:
                missing.append(each.name)
                continue
            object.__setattr__(self, each.name, value)
        for wrong, names in (("needs", missing), ("does not know", [*values])):
            if names:
                raise TypeError(f"{type(self).__name__} {wrong} {', '.join(map(repr, names))}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Look at what was given."""

    @recursive_repr()
    def __repr__(self) -> str:
        fields = fields_of(type(self))
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (*_compared(self),) == (*_compared(other),)

    def __hash__(self) -> int:
        return hash((*_compared(self),))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def fields_of(kind: type[Frozen]) -> tuple[dataclasses.Field[Any], ...]:
    """Return what a class of such objects holds, inherited fields first."""
    return dataclasses.fields(kind)  # type: ignore[arg-type]


def _compared(instance: Frozen) -> Iterator[Any]:
    fields = fields_of(type(instance))
    return (getattr(instance, each.name) for each in fields if each.compare)
