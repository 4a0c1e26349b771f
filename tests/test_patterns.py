"""Every regular expression of the product takes time that grows with the length of a text, no faster.

The patterns are found in the sources, so one that is added tomorrow is tried as well. Each is given
texts made of what it matches: something that fits, a part of it over and over, and an end that does
not fit. What has to try every way to share out such a run takes seconds for a message of 10 KB.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from headrace.connectors.network.refusal import MOST_SAID
from headrace.operators.script import wording
from tests.rooms import REPOSITORY, ROOMS
from tests.test_style import python

WAYS = ("fullmatch", "match", "search", "sub", "split", "findall", "finditer")
"""How a pattern is applied: where it may begin to match makes a difference."""
APPLYING = re.compile(rf"\.\s*(?:compile|{'|'.join(WAYS)})\b")
"""What stands in a file that makes or applies a pattern; most have none and are not parsed."""
WALKS = {"search", "sub", "split", "findall", "finditer"}
LENGTHS = (26, 32, 40, 50, 64, 90, 128, 10240)
"""Few at first: what takes longer by a factor with every character is found before it takes hours."""
LONGEST_SECONDS = 0.03
"""What a text of 10 KB may take: in linear time it is a millisecond, in quadratic time a second."""
ENDS = ("", "\x00", "!x", " \n~")

UNSEEN = {
    # Of two counts in a constructor and of a name that a script has; both are tried by hand below.
    "connectors/tables/cells.py": [r"(?:-?[0-9]{1,15}(?:\.[0-9]{1,15})?,)+"],
    # Of the directives of a format; with all that take more than a fixed number of characters.
    "compiler/times/timereading.py": [
        r"((?i:Monday|Tuesday|Sunday)),\ ( ?[0-9]|[0-9]{2})\ ((?i:January|May|December))\ ([0-9]{4})",
        r"([0-9]{1,2}):([0-9]{1,2})\.([0-9]{1,30})([Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)",
        r"([0-9]{1,3})/([0-9]{2,2})\ ([+-]?[0-9]{1,10})",
    ],
    "connectors/postgres/column_types.py": [
        r"\.[0-9]{3}[0-9]*[1-9]",
        r"[1-9][0-9]{0,3}(?![0-9])|\.[0-9]*[1-9]",
    ],
}
"""Patterns made of arguments of a function, as they come out."""


APPLIED = {
    "_ITEM": {"match"},
    "_ITEMS": {"match"},
    "_BLANKS": {"match", "fullmatch"},
    "_COMMON_LINE": {"match"},
    "_COMBINED_LINE": {"match"},
}
"""How those are applied that are handed to a function."""
BOUNDED = {
    ("operators/script/wording.py", "_OWNER"): 100,  # `Halt.before`
    ("operators/script/wording.py", "_SAID"): wording.LONGEST,
    ("connectors/clickhouse/connection.py", "_NAME"): 4 * MOST_SAID,
    ("connectors/clickhouse/connection.py", "_NOISE"): 4 * MOST_SAID,  # `_MOST_READ`
}
"""Patterns that do grow faster, and how long a text they see: they are tried with that."""
MADE_UP = {
    "web/endpoint.py": (b"w([^/]+)o([^/]+)r([^/]+)d", rb"/api/pipelines/([^/]+)/messages"),
}
"""What comes out where a path of an endpoint is taken for a word, and what there is."""
OURS_ALONE = "web/docs/"
"""What makes the pages of this repository reads nothing else, and runs in no server."""
UNTOLD: set[str] = set()
"""Files with patterns that cannot be told from the source."""


class Use(NamedTuple):
    """A pattern and one way in which the product applies it."""

    where: str
    pattern: re.Pattern[Any]
    way: str


def module_of(file: Path) -> ModuleType:
    """Return the module that a file of the product is imported as."""
    relative = file.relative_to(REPOSITORY).with_suffix("")
    parts = relative.parts
    if parts[:2] == ("rhai-python", "python"):
        return importlib.import_module(".".join(parts[2:]))
    return importlib.import_module(".".join(("headrace", *parts)).removesuffix(".__init__"))


def sources() -> list[Path]:
    """Return every file of the product."""
    found = [f for f in python(*ROOMS, "rhai-python/python") if f.name != "__main__.py"]
    return [f for f in found if OURS_ALONE not in f.as_posix()]


@cache
def nodes(file: Path) -> list[ast.AST]:
    """Return what may apply or make a pattern in a file."""
    text = file.read_text()
    if APPLYING.search(text) is None:
        return []
    wanted = (ast.Attribute, ast.Call)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, wanted)]


def applied(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return the ways in which something of each name is applied, anywhere in some files."""
    ways: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in nodes(file):
            if isinstance(node, ast.Attribute) and node.attr in WAYS:
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else ast.unparse(owner)
                ways[name].add(node.attr)
    return ways


class _Named(dict[str, Any]):
    """The names of a module; what only a function knows stands for a word."""

    def __missing__(self, name: str) -> str:
        return "word"


def calls(file: Path) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of `re` in a file, and which function of it each calls."""
    for node in nodes(file):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), name)) if name in (*WAYS, "compile"):
                yield node, name


def compiled(value: object) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value of a module, also in tables of them."""
    match value:
        case re.Pattern():
            yield value
        case dict():
            for each in [*value.keys(), *value.values()]:
                yield from compiled(each)
        case list() | tuple() | set() | frozenset():
            for each in value:
                yield from compiled(each)
        case _ if getattr(type(value), "__slots__", None) or hasattr(value, "__dict__"):
            if type(value).__module__.startswith("headrace") and not callable(value):
                for each in getattr(value, "__dict__", {}).values():
                    if isinstance(each, re.Pattern):
                        yield each


def uses() -> list[Use]:
    """Return every pattern of the product with every way in which it is applied."""
    ways = applied(sources())
    found: dict[tuple[str, str | bytes, str], Use] = {}

    def add(file: Path, name: str, pattern: re.Pattern[Any], some: Iterable[str]) -> None:
        for way in some:
            use = Use(f"{file.relative_to(REPOSITORY)}: {name}", pattern, way)
            found.setdefault((use.where.partition(":")[0], pattern.pattern, way), use)

    for file in sources():
        if not any(calls(file)):
            continue
        module = module_of(file)
        by_name = applied([file])
        here = {way for name, some in by_name.items() if name != "re" for way in some}
        named = set()
        for name, value in vars(module).items():
            for pattern in compiled(value):
                named.add(pattern.pattern)
                some = APPLIED.get(name) or by_name.get(name) or ways.get(name) or here or WAYS
                add(file, name, pattern, some)
        for call, name in calls(file):
            for pattern in evaluated(call, module):
                if name != "compile":
                    add(file, f"line {call.lineno}", pattern, [name])
                elif pattern.pattern not in named:
                    add(file, f"line {call.lineno}", pattern, here or WAYS)
        for text in UNSEEN.get(str(file.relative_to(REPOSITORY)), ()):
            add(file, text, re.compile(text), here)
    return [as_it_is(use) for use in found.values()]


def as_it_is(use: Use) -> Use:
    """Return a use with the pattern there is in place of one that is made up."""
    made_up, real = MADE_UP.get(use.where.partition(":")[0], (None, b""))
    return use._replace(pattern=re.compile(real)) if use.pattern.pattern == made_up else use


def evaluated(call: ast.Call, module: ModuleType) -> Iterator[re.Pattern[Any]]:
    """Yield the pattern of a call, if it can be told without running its function."""
    flags = next((each.value for each in call.keywords if each.arg == "flags"), None)
    if flags is None and call.func.attr == "compile" and len(call.args) > 1:  # type: ignore[attr-defined]
        flags = call.args[1]
    names = _Named(vars(module))
    try:
        text, told = (
            None if each is None else eval(compile(ast.Expression(each), "", "eval"), {}, names)
            for each in (call.args[0], flags)
        )
    except TypeError:  # made of numbers that only its function knows
        UNTOLD.add(str(Path(module.__file__ or "").resolve().relative_to(REPOSITORY)))
        return
    if isinstance(text, str | bytes) and text != "word":
        yield re.compile(text, told or 0)


ALL = sorted(uses(), key=lambda use: (use.where, use.way, repr(use.pattern)))


def seconds(apply: Callable[[Any], Any], text: str | bytes) -> float:
    """Return the CPU time of one application, the shortest of three if it was long."""
    shortest = LONGEST_SECONDS
    for _ in range(3):
        began = time.thread_time()
        taken = apply(text)
        if isinstance(taken, Iterator):
            for _ in taken:
                pass
        shortest = min(shortest, time.thread_time() - began)
        if shortest < LONGEST_SECONDS / 2:
            break
    return shortest


def growing(use: Use, before: str, part: str, after: str) -> str | None:
    """Return what is wrong with the pattern, tried with ``part`` over and over."""
    apply = getattr(use.pattern, use.way)
    if use.way == "sub":
        apply = lambda text: use.pattern.sub(b"" if isinstance(text, bytes) else "", text)  # noqa: E731
    file, _, name = use.where.partition(": ")
    most = BOUNDED.get((file, name), max(LENGTHS))
    for length in [min(length, most) for length in LENGTHS]:
        text: str | bytes = before + part * (length // len(part) + 1) + after
        if isinstance(use.pattern.pattern, bytes):
            text = str(text).encode("latin-1", "replace")
        if seconds(apply, text) >= LONGEST_SECONDS:
            return f"{length} characters, {part!r} over and over after {before!r}, before {after!r}"
    return None


@cache
def examples(pattern: re.Pattern[Any]) -> list[str]:
    """Return texts that the pattern matches, the same ones each time."""
    made: list[str] = []

    @seed(15)
    @settings(
        max_examples=5, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.from_regex(pattern))
    def collect(text: str | bytes) -> None:
        made.append(text if isinstance(text, str) else text.decode("latin-1"))

    with suppress(
        HypothesisException
    ):  # what looks behind cannot be made up: then its characters do
        collect()
    return sorted(set(made), key=lambda text: (len(text), text))[:3]


def attacks(use: Use) -> Iterator[tuple[str, str, str]]:
    """Yield what comes before, what is repeated, and what comes after."""
    text = use.pattern.pattern
    written = text if isinstance(text, str) else text.decode("latin-1")
    dice = random.Random(15)
    some = examples(use.pattern)
    longest = max(some, key=len, default="")
    for part in [*sorted({*written, *"a0 \n"} - {*"()?*+|^$<>=!"}), "\\\\", "/*"]:
        yield "", part, "\x00"
    for example in dict.fromkeys([longest, *some]):
        for _ in range(6):
            start, end = sorted(dice.sample(range(len(example) + 1), 2)) if example else (0, 0)
            if start < end:
                yield example[:start], example[start:end], dice.choice(ENDS) + example[end:]


@pytest.mark.timed
@pytest.mark.parametrize("use", ALL, ids=lambda use: f"{use.where} {use.way}")
def test_a_pattern_takes_time_that_grows_with_the_text_no_faster(use: Use) -> None:
    assert [wrong for attack in attacks(use) if (wrong := growing(use, *attack))] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "way"),
    [
        (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "fullmatch"),
        (r"[ \t]+$", "search"),
        (r"(a|aa)+b", "match"),
        (r'"(?:[^"\\]+|\\.)*', "finditer"),
    ],
)
def test_one_that_grows_faster_is_found(text: str, way: str) -> None:
    use = Use("here", re.compile(text), way)

    faults = (growing(use, *attack) for attack in attacks(use))
    if way == "finditer":  # it takes what it can and gives nothing back
        assert not any(faults)
    else:
        assert any(faults)


@pytest.mark.long
def test_a_cast_is_tried_and_what_it_was_before_would_be_found() -> None:
    (cast,) = {use for use in ALL if use.where == "compiler/casts.py: _DECIMAL"}
    before = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

    assert any(growing(cast._replace(pattern=before), *attack) for attack in attacks(cast))


def test_every_file_that_has_patterns_is_tried() -> None:
    files = {str(file.relative_to(REPOSITORY)) for file in sources() if any(calls(file))}

    assert set(UNSEEN) >= UNTOLD
    assert files - {use.where.partition(":")[0] for use in ALL} == set()
