"""The names of functions that a script can mean: those it is lent, and those that are written in it.

They are read from its text as far as an error needs them. What a name stands for is decided by the
engine alone; the functions that it has of itself are in `scriptlanguage`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.compiler.text.suggest import nearest
from headrace.operators.script.host import ScriptHost
from headrace.operators.script.language import FUNCTIONS
from headrace.operators.script.sources import EXTENSION

LENT: Mapping[str, int] = {"emit": 1} | {
    name: arity for name, (arity, _) in ScriptHost("").functions().items()
}
"""Functions that the language does not have of itself, and how many arguments each takes."""

ELSEWHERE: Mapping[str, str] = {
    "append": "push",
    "ceil": "ceiling",
    "count": "len",
    "float": "parse_float",
    "forEach": "for_each",
    "has": "contains",
    "includes": "contains",
    "int": "parse_int",
    "length": "len",
    "lower": "to_lower",
    "parseFloat": "parse_float",
    "parseInt": "parse_int",
    "size": "len",
    "str": "to_string",
    "strip": "trim",
    "substr": "sub_string",
    "substring": "sub_string",
    "timestamp": "now_millis",
    "toLowerCase": "to_lower",
    "toString": "to_string",
    "toUpperCase": "to_upper",
    "upper": "to_upper",
}
"""What functions of other languages are called in this one."""

MOST = 200
"""How many functions of a text are looked at: this is for errors, and must not take long."""
MOST_REMARKS = 10
"""How many functions that are not there are told."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)\s*\(([^)]{0,200})\)")
_CLOSURE = re.compile(r"\b(?:let|const)\s+([A-Za-z_]\w*)\s*=\s*(?:\||Fn\b)")
_IMPORT = re.compile(r"\bimport\s+[\"`]([^\"`\n]{1,200})[\"`]\s+as\s+([A-Za-z_]\w*)")


@dataclass(frozen=True)
class ScriptNames:
    """What is written in one text of a script.

    - ``functions``: its own, each with the number of parameters.
    - ``imported``: those of the modules that it imports, as they are called here: `units::celsius`.
    - ``closures``: variables that hold a function.
    """

    functions: Mapping[str, int]
    imported: frozenset[str]
    closures: frozenset[str]

    @classmethod
    def of(cls, text: str, modules: Mapping[str, str]) -> ScriptNames:
        """Return the names in a text; ``modules`` are the texts of files by path."""
        imported = {
            f"{alias}::{name}"
            for path, alias in islice(_pairs(_IMPORT, text), MOST)
            for name in _functions(modules.get(path + EXTENSION, ""))
        }
        closures = frozenset(_CLOSURE.findall(text))
        return cls(_functions(text), frozenset(imported), closures)

    def meant(self, name: str) -> str | None:
        """Return the function that somebody who called ``name`` may have meant."""
        if at_home := [each for each in self.imported if each.endswith(f"::{name}")]:
            return min(at_home)
        known = (*LENT, *self.functions, *self.imported)
        return ELSEWHERE.get(name) or (None if name in FUNCTIONS else _similar(name, known))

    def arity(self, name: str) -> int | None:
        """Return how many arguments a function takes, if it is one of these."""
        return LENT.get(name, self.functions.get(name))


@dataclass(frozen=True, slots=True)
class Unknown:
    """A function that is called and is not there: its name, what may be meant, the first call."""

    name: str
    meant: str | None
    text: int
    """Which of the texts has the call, and at what offset."""
    at: int


def unknown(calls: Iterable[str], texts: Sequence[str]) -> Iterator[Unknown]:
    """Yield functions that are called, and that neither the language nor any of the texts has.

    What may hold a function is left alone: ``f`` where it is also a variable, and ``m.f`` where it is
    anything else than called, as a map may have a function under that key.
    """
    there = {*LENT, *FUNCTIONS}
    strange = [each for each in sorted({*calls} - there) if _NAME.fullmatch(each)][:MOST]
    strange = [each for each in strange if not any(defines(text, each) for text in texts)]
    if not strange:
        return
    seen = {each: _Mentions() for each in strange}
    mention = re.compile(
        rf"(?P<before>\.\s*|[\"'`])?\b(?P<name>{'|'.join(strange)})\b"
        r"(?P<after>(?:\s|/\*.*?\*/)*\(|\s*:(?!:))?",
        re.DOTALL,
    )
    for number, text in enumerate(texts):
        for found in mention.finditer(text):
            seen[found["name"]].add(found, number)
    known = sorted({*there, *(name for text in texts for name in _functions(text))})
    missing = ((name, each.call) for name, each in seen.items())
    for name, call in islice(((name, call) for name, call in missing if call), MOST_REMARKS):
        meant = ELSEWHERE.get(name) or _similar(name, known)
        yield Unknown(name, meant, *call)


class _Mentions:
    """How a name is mentioned in texts."""

    def __init__(self) -> None:
        self._alone: tuple[int, int] | None = None
        self._of_value: tuple[int, int] | None = None
        self._is_variable = False
        self._is_key = False

    def add(self, found: re.Match[str], text: int) -> None:
        before, after = found["before"] or "", found["after"] or ""
        place = text, found.start("name")
        if after.endswith("("):
            if before.startswith("."):
                self._of_value = self._of_value or place
            else:
                self._alone = self._alone or place
        elif before or after:
            self._is_key = True
        else:
            self._is_variable = True

    @property
    def call(self) -> tuple[int, int] | None:
        """The first call that cannot be one of a function that a value holds."""
        if self._is_variable:
            return None
        return self._alone or (None if self._is_key else self._of_value)


def defines(text: str, name: str) -> bool:
    """Return whether a text may have a function of that name, for whatever type."""
    return re.search(rf"\bfn\s+(?:(?:\w+|\"[^\"\n]*\")\s*\.\s*)?{name}\b", text) is not None


def _functions(text: str) -> dict[str, int]:
    """Return the functions that a text defines, with the number of their parameters."""
    found = islice(_pairs(_FUNCTION, text), MOST)
    return {name: sum(1 for each in given.split(",") if each.strip()) for name, given in found}


def _pairs(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield both groups of all that a pattern finds."""
    return ((found[1], found[2]) for found in pattern.finditer(text))


def _similar(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known names this one is a typing error of.

    The first look is a cheap one: what counts slips takes longer to load than a script to compile.
    """
    near = [
        each for each in known if each[0].casefold() == name[0].casefold() and _share(name, each)
    ]
    return nearest(name, near) if near else None


def _share(name: str, other: str) -> bool:
    """Return whether two names are made of the same letters, up to two."""
    return len({*name.casefold()} ^ {*other.casefold()}) <= 2
