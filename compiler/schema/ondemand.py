"""The variants of a union, which are imported when somebody asks for them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import Any, Protocol, TypeVar


class _Variant(Protocol):
    tag: str
    listed: int


V = TypeVar("V", bound=_Variant)


class VariantsOnDemand(Mapping[str, V]):
    """The variants by tag, in their order.

    With a ``package`` each is in the module of it that is called as its tag. Who asks for one has that one
    imported; who goes through them, all.
    """

    def __init__(self, package: str | None = None) -> None:
        self._package = package
        self._there: dict[str, V] = {}
        self._is_whole = False
        self._adding = Lock()
        if package is not None:
            _IN_FILES.append(self)

    def add(self, variant: V) -> None:
        """Have one more, behind those that are listed before it."""
        with self._adding:  # another thread may be importing another one
            further = sorted([*self._there.values(), variant], key=lambda each: each.listed)
            # A new one: somebody may be going through that of before.
            self._there = {each.tag: each for each in further}

    def __getitem__(self, tag: str) -> V:
        if tag not in self._there and tag in self._modules:
            import_module(f"{self._package}.{tag}")
        return self._there[tag]

    def __iter__(self) -> Iterator[str]:
        return iter(self.complete())

    def __len__(self) -> int:
        return len(self.complete())

    def complete(self) -> Mapping[str, V]:
        """Return all of them, every one imported."""
        if not self._is_whole:
            for module in sorted(self._modules):
                import_module(f"{self._package}.{module}")
            self._is_whole = True
        return self._there

    @cached_property
    def _modules(self) -> frozenset[str]:
        """What may be imported: a tag comes from a config, and may be any text."""
        if self._package is None:
            return frozenset()
        found = pkgutil.iter_modules(import_module(self._package).__path__)
        return frozenset(each.name for each in found)


_IN_FILES: list[VariantsOnDemand[Any]] = []


def import_variants() -> None:
    """Import the variants of every union that is known."""
    for each in _IN_FILES:
        each.complete()
