"""One name, one meaning: what a reader greps for is one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ROOMS = ("compiler", "operators", "connectors", "web")
OF_EVERY_SYSTEM = {"__init__.py", "connection.py", "sink.py", "source.py"}
SAME_MEANING = {
    "Diagnostic": "of a document; web/apierror.py has its form in an answer",
    "Engine": "what runs; web/engineprotocol.py has what the web asks of it",
    "Limits": "of one component each",
    "Listener": "of live events; web/engineprotocol.py has what the web asks of it",
    "WayIn": "of posts; web/engineprotocol.py has what the web asks of it",
}
"""Names that several files define, and why they mean one thing."""


def test_a_public_name_means_one_thing() -> None:
    places = defaultdict(list)
    for path in _files():
        for name in _classes(ast.parse(path.read_text())):
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
