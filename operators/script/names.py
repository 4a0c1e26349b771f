"""The names of functions that a script can mean: those it is lent, and those that are written in it.

They are read from its text as far as an error needs them. What a name stands for is decided by the
engine alone.

The engine cannot list the functions that it has of itself in the build that is installed (`metadata`
takes a JSON library into it), so they stand here: of rhai 1.27.0, without what is left out, and with our
own. Tests try each against the engine, compare the list with what our part of the engine registers, and
see that docs/scripts.md has an example of each; another version of rhai fails them until somebody has
looked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.compiler.text.suggest import nearest
from headrace.operators.script.host import ScriptHost
from headrace.operators.script.sources import EXTENSION

VERSION = "1.27.0"
"""The version of rhai whose functions these are."""

KEYWORDS = frozenset({"Fn", "call", "curry", "is_def_fn", "is_def_var", "is_shared", "type_of"})
"""Functions that are a part of the language itself."""

_REGISTERED = """
E PI abs acos acosh all append asin asinh atan atanh bits bytes ceiling chars chop clear contains cos
cosh crop debug dedup drain end ends_with exit exp extract fill_with filter find find_map floor for_each
fraction get get_bit get_bits hypot index_of insert int is_anonymous is_empty is_even is_exclusive
is_finite is_inclusive is_infinite is_nan is_odd is_zero keys len ln log make_lower make_upper map
matches max min mixin name order order_by order_desc pad parse_float parse_int parse_json parse_regex
pop print push range reduce reduce_rev remove replace replace_regex retain reverse round set set_bit
set_bits shift sign sin sinh some sort sort_by sort_desc splice split split_rev sqrt start starts_with
sub_string take tan tanh to_binary to_blob to_chars to_debug to_degrees to_float to_hex to_int to_json
to_lower to_octal to_radians to_string to_upper trim truncate values zip
"""

FUNCTIONS = KEYWORDS | {*_REGISTERED.split()}
"""Every function that a script finds besides those that it is lent (`LENT`)."""

LENT: Mapping[str, int] = {"emit": 1} | {
    name: arity for name, (arity, _) in ScriptHost("").functions().items()
}
"""Functions that the language does not have of itself, and how many arguments each takes."""

ELSEWHERE: Mapping[str, str] = {
    "append": "push",
    "capture": "parse_regex",
    "captures": "parse_regex",
    "ceil": "ceiling",
    "count": "len",
    "date_parse": "parse_time",
    "float": "parse_float",
    "forEach": "for_each",
    "gsub": "replace_regex",
    "has": "contains",
    "includes": "contains",
    "int": "parse_int",
    "is_match": "matches",
    "length": "len",
    "lower": "to_lower",
    "parseFloat": "parse_float",
    "parseInt": "parse_int",
    "regex_replace": "replace_regex",
    "replaceAll": "replace_regex",
    "size": "len",
    "str": "to_string",
    "strftime": "format_time",
    "strip": "trim",
    "strptime": "parse_time",
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

_groups = re.Match[str].groups


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
            for path, alias in islice(map(_groups, _IMPORT.finditer(text)), MOST)
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
    seen: dict[str, dict[str, tuple[int, int]]] = {each: {} for each in strange}
    mention = re.compile(
        rf"(?P<before>\.\s*|[\"'`])?\b(?P<name>{'|'.join(strange)})\b"
        r"(?P<after>(?:\s|/\*.*?\*/)*\(|\s*:(?!:))?",
        re.DOTALL,
    )
    for number, text in enumerate(texts):
        for found in mention.finditer(text):
            seen[found["name"]].setdefault(_use(found), (number, found.start("name")))
    known = sorted({*there, *(name for text in texts for name in _functions(text))})
    missing = ((name, call) for name, uses in seen.items() if (call := _call(uses)))
    for name, call in islice(missing, MOST_REMARKS):
        yield Unknown(name, ELSEWHERE.get(name) or _similar(name, known), *call)


def _use(found: re.Match[str]) -> str:
    """Return how a name is used where it is mentioned."""
    before, after = found["before"] or "", found["after"] or ""
    if after.endswith("("):
        return "call on a value" if before.startswith(".") else "call"
    return "key" if before or after else "variable"


def _call(uses: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Return the first call that cannot be one of a function that a value holds."""
    if "variable" in uses:
        return None
    return uses.get("call") or (None if "key" in uses else uses.get("call on a value"))


def defines(text: str, name: str) -> bool:
    """Return whether a text may have a function of that name, for whatever type."""
    return re.search(rf"\bfn\s+(?:(?:\w+|\"[^\"\n]*\")\s*\.\s*)?{name}\b", text) is not None


def _functions(text: str) -> dict[str, int]:
    """Return the functions that a text defines, with the number of their parameters."""
    found = islice(map(_groups, _FUNCTION.finditer(text)), MOST)
    return {name: sum(1 for each in given.split(",") if each.strip()) for name, given in found}


def _similar(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known names this one is a typing error of.

    The first look is a cheap one: what counts slips takes longer to load than a script to compile.
    """
    letters = {*name.casefold()}
    near = [
        each
        for each in known
        if each[0].casefold() == name[0].casefold() and len({*each.casefold()} ^ letters) <= 2
    ]
    return nearest(name, near) if near else None
