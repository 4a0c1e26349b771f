"""Every component there is, found in the rooms that hold them, and imported when it is asked for.

A component stands in the module that is called after its kind (``kafka``), or, where another file has
that name, after kind and family (``pipelineinput``). So one that a config names is found without the
others. They are imported as soon as somebody goes through the kinds of a family. A file imports its
driver where it is built, never at its top.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from threading import Lock
from types import ModuleType

from headrace.compiler.component.families import FAMILIES, Component
from headrace.compiler.schema.ondemand import import_variants


class Catalogue:
    """The components by family and kind, in the order of the reference.

    ``modules`` are names of modules that may have further ones. Each is imported when it may have what
    is looked up, all of them when anybody goes through a family.

    Raises:
        ValueError: two components of a family have one kind, or a module is not called after what it
            has; from whatever has it imported.
    """

    def __init__(self, components: Iterable[type[Component]], modules: Iterable[str] = ()) -> None:
        self._families: dict[str, dict[str, type[Component]]] = {name: {} for name in FAMILIES}
        self._modules = dict.fromkeys(modules)
        self._importing = Lock()
        for each in components:
            self._add(each)

    def family(self, name: str) -> Mapping[str, type[Component]]:
        """Return the components of one family by kind."""
        return _Family(self, name)

    def __iter__(self) -> Iterator[type[Component]]:
        for kinds in self.complete().values():
            yield from kinds.values()

    def named(self, family: str, kind: str) -> type[Component] | None:
        """Return a component, imported if nobody has asked for it yet; None: there is none."""
        if kind not in self._families[family]:
            # A copy: another thread may be importing, and takes away what it has imported.
            self._import([each for each in [*self._modules] if _is_called(each, family, kind)])
        return self._families[family].get(kind)

    def complete(self) -> Mapping[str, Mapping[str, type[Component]]]:
        """Return all components by family and kind, each imported with all that its options may be."""
        self._import([*self._modules])
        import_variants()
        return self._families

    def _import(self, modules: Iterable[str]) -> None:
        with self._importing:
            for name in modules:
                for found in _components(import_module(name)):
                    family, kind = found.family, found.kind
                    if not _is_called(name, family, kind):
                        raise ValueError(f"'{name}' is not called after {family} '{kind}'")
                    self._add(found)
                # Not before they are there: another thread may look one up meanwhile.
                self._modules.pop(name, None)

    def _add(self, component: type[Component]) -> None:
        kinds = self._families[component.family]
        if kinds.get(component.kind, component) is not component:
            raise ValueError(f"two {component.family} components named '{component.kind}'")
        further = sorted({*kinds.values(), component}, key=lambda each: (each.listed, each.kind))
        # A new one: somebody may be going through that of before.
        self._families[component.family] = {each.kind: each for each in further}


class _Family(Mapping[str, type[Component]]):
    """The components of one family, as far as anybody looks."""

    def __init__(self, catalogue: Catalogue, name: str) -> None:
        self._catalogue, self._name = catalogue, name

    def __getitem__(self, kind: str) -> type[Component]:
        if (found := self._catalogue.named(self._name, kind)) is None:
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalogue.complete()[self._name])

    def __len__(self) -> int:
        return len(self._catalogue.complete()[self._name])


def scan(*rooms: str) -> Catalogue:
    """Return the catalogue of every component defined in the modules of ``rooms`` (package names)."""
    return Catalogue(
        (),
        (
            entry.name
            for room in rooms
            for entry in pkgutil.iter_modules(import_module(room).__path__, f"{room}.")
        ),
    )


def _is_called(module: str, family: str, kind: str) -> bool:
    """Return whether a module has the name of one that has a component."""
    return module.rpartition(".")[2] in (kind, f"{kind}{family}")


def _components(module: ModuleType) -> Iterator[type[Component]]:
    """Yield the components that a module defines."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Component)
            and value.kind
            and value.__module__ == module.__name__
        ):
            yield value
