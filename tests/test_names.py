"""One name, one meaning: what a reader greps for is one thing."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY, ROOMS

Trees = dict[Path, ast.Module]

OF_EVERY_SYSTEM = {"__init__.py", "connection.py", "sink.py", "source.py"}
SAME_MEANING = {
    "Diagnostic": "of a document; web/apierror.py has its form in an answer",
    "Engine": "what runs; web/engineprotocol.py has what the web asks of it",
    "Limits": "of one component each",
    "Listener": "of live events; web/engineprotocol.py has what the web asks of it",
    "Pipeline": "of the running graph; authoring/offlinepipeline.py has one that authors run",
    "WayIn": "of posts; web/engineprotocol.py has what the web asks of it",
}
"""Names that several files define, and why they mean one thing."""


@pytest.fixture(scope="module")
def trees() -> Trees:
    """Give what each file says; nobody holds it longer, for it is a million objects."""
    return {path: ast.parse(path.read_text()) for path in _files()}


def test_a_public_name_means_one_thing(trees: Trees) -> None:
    places = defaultdict(list)
    for path, tree in trees.items():
        for name in _classes(tree):
            places[name].append(str(path.relative_to(REPOSITORY)))

    assert {name for name, where in places.items() if len(where) > 1} == set(SAME_MEANING)


def test_a_file_name_means_one_file() -> None:
    places = defaultdict(list)
    for path in _files():
        places[path.name].append(str(path.relative_to(REPOSITORY)))

    assert {name for name, where in places.items() if len(where) > 1} == OF_EVERY_SYSTEM


def _files() -> Iterator[Path]:
    return (path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py"))


def _classes(tree: ast.Module) -> Iterator[str]:
    """Yield the classes and types that a module defines, as far as they are public."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not name[0].isupper() or name.isupper():
                    continue
            case _:
                continue
        if not name.startswith("_"):
            yield name


def test_an_error_that_a_docstring_tells_of_exists(trees: Trees) -> None:
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    known = {*dir(builtins), *(name for _, node in nodes for name in _imported(node))}
    known |= {node.name for _, node in nodes if isinstance(node, ast.ClassDef)}
    told = {
        (str(path.relative_to(REPOSITORY)), name)
        for path, node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for raises in re.findall(r"Raises:\n((?: +.*\n?)+)", ast.get_docstring(node) or "")
        for name in re.findall(r"^ +([A-Z]\w+):", raises, re.MULTILINE)
    }

    assert len(told) > 100
    assert [each for each in told if each[1] not in known] == []


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name for each in node.names)
