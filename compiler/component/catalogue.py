"""Every component there is, found by scanning the rooms that hold them.

Scanning imports the files, so a file imports its driver where it is built, never at its top.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping

from headrace.compiler.component.families import FAMILIES, Component


class Catalogue:
    """The components by family and kind, in the order of the reference."""

    def __init__(self, components: Iterable[type[Component]]) -> None:
        self._families: dict[str, dict[str, type[Component]]] = {name: {} for name in FAMILIES}
        for component in sorted(components, key=lambda each: (each.listed, each.kind)):
            kinds = self._families[component.family]
            if component.kind in kinds:
                raise ValueError(f"two {component.family} components named '{component.kind}'")
            kinds[component.kind] = component

    def family(self, name: str) -> Mapping[str, type[Component]]:
        """Return the components of one family by kind."""
        return self._families[name]

    def __iter__(self) -> Iterator[type[Component]]:
        for kinds in self._families.values():
            yield from kinds.values()


def scan(*rooms: str) -> Catalogue:
    """Return the catalogue of every component defined in the modules of ``rooms`` (package names)."""
    modules = (
        importlib.import_module(entry.name)
        for room in rooms
        for entry in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}.")
    )
    found = (
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Component)
        and value.kind
        and value.__module__ == module.__name__
    )
    return Catalogue(dict.fromkeys(found))
