"""Which tests hold which promises: read from the text of the tests, none of which is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

HeldPromises = Mapping[str, list[str]]
"""The tests of each promise, as pytest calls them, by its name."""

FOLDERS = ("tests", "specs")
_MARK = "promise"


def held_promises(repository: Path) -> HeldPromises:
    """Return the tests that carry ``@promise("name")``, in the order of their files."""
    held: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for file in sorted((repository / folder).rglob("test_*.py")):
            text = file.read_text()
            if f"@{_MARK}(" in text:
                path = file.relative_to(repository).as_posix()
                for test, name in _marks(ast.parse(text).body, path):
                    held.setdefault(name, []).append(test)
    return held


def _marks(body: Iterable[ast.stmt], within: str) -> Iterator[tuple[str, str]]:
    """Yield each test with each name that it is marked with."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _marks(node.body, f"{within}::{node.name}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                for name in _names(mark):
                    yield f"{within}::{node.name}", name


def _names(mark: ast.expr) -> Iterator[str]:
    match mark:
        case ast.Call(func=ast.Name(id=called), args=arguments) if called == _MARK:
            yield from (ast.literal_eval(each) for each in arguments)


def unmatched(declared: Iterable[str], held: HeldPromises) -> Iterator[str]:
    """Yield what is wrong between the promises that are declared and the marks of the tests."""
    known = set(declared)
    for name in sorted(known - held.keys()):
        yield f"no test holds the promise '{name}': mark one with @promise(\"{name}\")"
    for name in sorted(held.keys() - known):
        yield f"{held[name][0]}: nothing promises '{name}'"
