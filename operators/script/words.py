"""What the script engine says of a run that failed, in the words of the page on scripts.

The engine names types as its own language has them, and knows neither what is lent to a script nor
what somebody who comes from another language will try.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from headrace.operators.script.names import ELSEWHERE, LENT, ScriptNames

KINDS = {
    "()": "()",
    "bool": "a bool",
    "i64": "an int",
    "f64": "a float",
    "char": "a char",
    "string": "a string",
    "&str | ImmutableString | String": "a string",
    "array": "an array",
    "map": "a map",
    "range": "a range",
    "range=": "a range",
    "Fn": "a function",
}
"""The engine's names of types, as a part of a sentence."""

NOTHING = "() is null or a field that is not there"
"""What is behind most of what fails."""

FLOATS = ("round", "floor", "ceiling", "sqrt", "exp", "ln", "log", "sin", "cos", "tan", "is_nan")
"""Functions that take a float and no int: those that somebody may try on one."""
_SUMS = ("-", "*", "/", "%", "**")
"""Operators that take numbers only."""


LONGEST = 2048
"""Characters of what is reworded: a failure is cut to as many bytes. What the engine quotes may come out
of a message, 256 KiB of it, and a pattern with two quotations takes time that grows with its square."""


def reworded(message: str, names: ScriptNames) -> str:
    """Return what the engine says of a script with these names, with what helps to mend it."""
    if len(message) > LONGEST:
        return message
    for pattern, said in _SAID:
        if found := pattern.fullmatch(message):
            return found.expand(said) if isinstance(said, str) else said(found, names)
    return message


def _kind(name: str) -> str:
    return KINDS.get(name, f"a {name}")


def _with(said: str, hint: str | None) -> str:
    return said if hint is None else f"{said}: {hint}"


def _not_found(found: re.Match[str], names: ScriptNames) -> str:
    """Say that no function takes such arguments, or that there is none."""
    name, kinds = found[1], [_kind(each) for each in found[2].split(", ") if each]
    if not re.match(r"\w", name):
        return _with(f"'{name}' does not take {_all(kinds)}", _of_operands(name, kinds))
    if name.startswith("anon$"):
        return f"a closure is called with {_counted(len(kinds))}, and takes another number of them"
    arity = names.arity(name)
    if arity is not None and arity != len(kinds):
        return f"'{name}' takes {_counted(arity)}, not {len(kinds)}"
    said = f"no function '{name}' takes {_all(kinds)}" if kinds else f"there is no '{name}()'"
    return _with(said, _of_call(name, kinds, names))


def _of_operands(name: str, kinds: Sequence[str]) -> str | None:
    if "()" in kinds:
        return NOTHING
    if name in _SUMS and "a string" in kinds:
        return "parse_float() makes a number of a text"
    return None


def _of_call(name: str, kinds: Sequence[str], names: ScriptNames) -> str | None:
    if name in names.closures:
        return f"a function in a variable is called with {name}.call()"
    if (meant := names.meant(name)) is not None:
        return f"did you mean '{meant}'?"
    if "()" in kinds:
        return NOTHING
    if name in FLOATS and kinds == ["an int"]:
        return "to_float() makes a float of it"
    return None


def _no_property(found: re.Match[str], names: ScriptNames) -> str:
    """Say that a value has not that property."""
    name, kind = found[1], _kind(found[2])
    said = f"{kind} has no property '{name}'"
    if kind == "()":
        return f"{said}: {NOTHING}, and '?.{name}' gives () then"
    is_function = name in LENT or name in names.functions or name in ELSEWHERE.values()
    meant = name if is_function else names.meant(name)
    return _with(said, None if meant is None else f"did you mean '{meant}()'?")


def _not_writable(found: re.Match[str], names: ScriptNames) -> str:
    """Say that a value has no properties that could be written."""
    kind = _kind(found[2])
    said = f"{kind} has no property '{found[1]}' to write"
    return _with(said, f"{NOTHING}; make it a map first, #{{}}" if kind == "()" else None)


def _not_indexed(found: re.Match[str], names: ScriptNames) -> str:
    """Say that a value has no elements."""
    kind = _kind(found[1])
    said = f"{kind} has no element for {_kind(found[2])} in brackets"
    return _with(said, NOTHING if kind == "()" else None)


def _other_kind(found: re.Match[str], names: ScriptNames) -> str:
    """Say which type is wanted."""
    kind, wanted = _kind(found[1]), _kind(found[2])
    said = f"expected {wanted}, found {kind}"
    if kind == "()":
        return f"{said}: {NOTHING}"
    return _with(said, "compare it, as in x > 0" if wanted == "a bool" else None)


def _no_variable(found: re.Match[str], names: ScriptNames) -> str:
    name, sign, constant = found[1].rpartition("::")
    if sign:
        return (
            f"'{name}::' finds no constant '{constant}':"
            f" const {constant} = ... has to stand before it, outside of every block"
        )
    return f"there is no variable '{constant}': a function sees only what it is handed"


def _all(kinds: Sequence[str]) -> str:
    *first, last = kinds
    return f"{', '.join(first)} and {last}" if first else last


def _counted(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"


_SAID: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str], ScriptNames], str]]] = tuple(
    (re.compile(pattern, re.DOTALL), said)
    for pattern, said in (
        (r"Function not found: (\S+) \((.*)\)", _not_found),
        (r"Function not found: (\S+) \(.*…", r"no function '\1' takes all these arguments"),
        (r"Unknown property '(.*)' - a getter is not registered for type '(.*)'", _no_property),
        (
            r"No writable property '(.*)' - a setter is not registered for type '(.*)' to .*",
            _not_writable,
        ),
        (r"Indexer unavailable: (.+?) \[(.+?)\](?: = .*)?", _not_indexed),
        (r"Data type incorrect: (.*) \(expecting (.*)\)", _other_kind),
        (
            r"For loop expects iterable type",
            "'for' goes through an array, a string or a range:"
            " take keys() or values() of a map, and '?? []' of a field that may be missing",
        ),
        (r"Variable not found: (.*)", _no_variable),
        (
            r"emit takes a list here, not (.*)",
            r"'emit' takes a list of messages where 'scope' is batch, not \1",
        ),
        (
            r"argument #\d+ of function '(.*)' is in use by the call .*",
            r"'\1' is at work on a value that its own closure uses: copy the value first",
        ),
        (
            r"Possibly a typo of '=='\?",
            "'=' assigns, and here a value is wanted: did you mean '=='?",
        ),
    )
)
"""What the engine says, and what is better, or who says it better."""
