"""What is used of others that is not public: counted, so that it can only become less.

Counted are names with an underscore that belong to others, however they are reached: an attribute, a
text handed to `getattr`, a member that a class of ours inherits or overrides, an import; and what is put
in place of something in a module of theirs. Dunder names are public.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY, ROOMS

REACHING = {"getattr", "setattr", "hasattr", "delattr"}
PUBLIC = {
    # https://marshmallow.readthedocs.io/en/stable/custom_fields.html
    "_deserialize",
    "os._exit",
    "sys.stderr",
    "sys.stdin",
    "sys.stdout",
}
"""Documented by whoever has it for just this, and so public whatever it is called."""
MOST = 10
UNDOCUMENTED = {"uvicorn.protocols"}
"""Packages that their documentation says nothing of: what is imported from them counts."""
USED = {
    # Ticks of a virtual second; `tests/compiler/test_clock_virtual.py` holds what it is for.
    "compiler/clock.py: _clock_resolution",
    # Both have their reason where they are, and `tests/connectors/test_nats_driver.py`.
    "connectors/nats/connection.py: _send_command",
    "connectors/nats/connection.py: _process_msg",
    # All names are of its HTTP protocol, which ours is made of; `tests/web/process/test_uvicorn.py`.
    "web/process/boundedreading.py: FlowControl",
    "web/process/boundedreading.py: HttpToolsProtocol",
    "web/process/boundedreading.py: RequestResponseCycle",
    "web/process/protocol.py: RequestResponseCycle",
}
"""Each with its reason in a comment beside it, and a test that fails when they change it."""


def test_nothing_of_others_is_used_that_is_not_public_but_this() -> None:
    assert {f"{path.relative_to(REPOSITORY)}: {name}" for path, name in _all_uses()} == USED
    assert len(USED) <= MOST


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("client = Client()\nclient._conns", "_conns"),
        ("getattr(client, '_conns')", "_conns"),
        ("import _thread", "_thread"),
        ("from redis._parsers import Reader", "_parsers"),
        ("from redis import _compat", "_compat"),
        ("from uvicorn.protocols.utils import is_ssl", "is_ssl"),
        (
            "import asyncio\nclass Own(asyncio.BaseEventLoop):\n  def _run_once(self): ...",
            "_run_once",
        ),
        ("import asyncio\nclass Own(asyncio.BaseEventLoop):\n  def a(self): self._ready", "_ready"),
        (
            "import asyncio\nclass Own(asyncio.BaseEventLoop):\n  def a(self): super()._ready",
            "_ready",
        ),
        ("import json\njson.dumps = print", "json.dumps"),
    ],
)
def test_every_way_to_it_is_counted(source: str, used: str) -> None:
    tree = ast.parse(source)
    module: dict[str, object] = {}
    exec("import asyncio\n" + source[source.index("class") :] if "class" in source else "", module)

    assert [*_uses(tree, module)] == [used]


@pytest.mark.parametrize(
    "source",
    [
        "class Own:\n  def __init__(self): self._own = 1\n  def same(self, other): other._own",
        "client.__class__",
        "import os\nos._exit(1)",
        "for _ in range(3): pass",
    ],
)
def test_what_is_ours_or_public_is_not(source: str) -> None:
    assert [*_uses(ast.parse(source), {})] == []


def _all_uses() -> Iterator[tuple[Path, str]]:
    for path in (each for room in ROOMS for each in (REPOSITORY / room).rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        named = ".".join(["headrace", *parts]).removesuffix(".__init__")
        if parts[-1] != "__main__":
            module = importlib.import_module(named)
            yield from ((path, name) for name in _uses(ast.parse(path.read_text()), vars(module)))


def _uses(tree: ast.Module, module: dict[str, object]) -> Iterator[str]:
    """Yield what a module uses of others, given its names as they are when it is imported."""
    nodes = [*ast.walk(tree)]
    ours = _defined(nodes)
    modules = {name for node in nodes if isinstance(node, ast.Import) for name in _bound(node)}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls")):
                pass  # looked at with its class
            case ast.Attribute(value=ast.Call(func=ast.Name("super"))):
                pass
            case ast.Attribute(attr=name) if _is_private(name) and name not in ours:
                if ast.unparse(node) not in PUBLIC:
                    yield name
            case ast.Call(func=ast.Name(call), args=[_, ast.Constant(str() as name), *_]):
                if call in REACHING and _is_private(name):
                    yield name
            case ast.Import(names=names):
                yield from (part for each in names for part in _private_parts(each.name))
            case ast.ImportFrom(module=str() as source, names=names):
                yield from _private_parts(source)
                hidden = any(source.startswith(each) for each in UNDOCUMENTED)
                yield from (each.name for each in names if hidden or _is_private(each.name))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(owner)) as target]):
                if owner in modules and ast.unparse(target) not in PUBLIC:
                    yield ast.unparse(target)
            case ast.ClassDef(name=name):
                yield from _inherited(node, module.get(name))


def _inherited(node: ast.ClassDef, made: object) -> Iterator[str]:
    """Yield the members of bases that are not ours, as far as a class uses or overrides them."""
    bases = [
        base
        for base in (inspect.getmro(made)[1:] if inspect.isclass(made) else ())
        if not base.__module__.startswith("headrace.") and base is not object
    ]
    theirs = set().union(*map(_members, bases))
    names: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name("self" | "cls"), attr=name):
                names.add(name)
            case ast.Attribute(value=ast.Call(func=ast.Name("super")), attr=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
    yield from sorted(names & theirs - PUBLIC)


@cache
def _members(base: type) -> frozenset[str]:
    """Return the private members of a class: of itself, and what its methods set."""
    try:
        source = inspect.getsource(base)
    except (OSError, TypeError):  # compiled
        source = ""
    named = {*vars(base), *re.findall(r"\bself\.(_\w+)", source)}
    return frozenset(filter(_is_private, named))


def _defined(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names that a module gives to something, attributes of its own objects included."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls"), attr=name, ctx=ast.Store()):
                names.add(name)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def _bound(node: ast.Import) -> Iterator[str]:
    for each in node.names:
        if not each.name.startswith("headrace."):
            yield each.asname or each.name.split(".")[0]


def _private_parts(dotted: str) -> list[str]:
    return [part for part in dotted.split(".") if _is_private(part)]


def _is_private(name: str) -> bool:
    return name.startswith("_") and name != "_" and not name.endswith("__")
