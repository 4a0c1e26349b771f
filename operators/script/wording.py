"""What the script engine says of a script, in the words of the page on scripts, and what would do instead.

The engine names types as its own language has them, and knows neither what is lent to a script nor
what somebody who comes from another language will try. A run that failed is told with its values'
types (`reworded`); a script that does not compile, with what its text shows was meant (`Halt`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.compiler.text.suggest import did_you_mean
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
    *first, last = kinds or [""]
    told = f"{', '.join(first)} and {last}" if first else last
    arity = LENT.get(name, names.functions.get(name))
    if name.startswith("anon$"):
        return f"a closure is called with {_counted(len(kinds))}, and takes another number of them"
    if arity is not None and arity != len(kinds):
        return f"'{name}' takes {_counted(arity)}, not {len(kinds)}"
    if not re.match(r"\w", name):
        said = f"'{name}' does not take {told}"
    else:
        said = f"no function '{name}' takes {told}" if kinds else f"there is no '{name}()'"
    return _with(said, _of_call(name, kinds, names))


def _of_call(name: str, kinds: Sequence[str], names: ScriptNames) -> str | None:
    """Return what may help where a function, or an operator, does not take what it is given."""
    meant = names.meant(name)
    hints = (
        (name in names.closures, f"a function in a variable is called with {name}.call()"),
        (meant is not None, f"did you mean '{meant}'?"),
        ("()" in kinds, NOTHING),
        (name in _SUMS and "a string" in kinds, "parse_float() makes a number of a text"),
        (name in FLOATS and kinds == ["an int"], "to_float() makes a float of it"),
    )
    return next((hint for helps, hint in hints if helps), None)


def _no_property(found: re.Match[str], names: ScriptNames) -> str:
    """Say that a value has not that property."""
    name, kind = found[1], _kind(found[2])
    said = f"{kind} has no property '{name}'"
    if kind == "()":
        return f"{said}: {NOTHING}, and '?.{name}' gives () then"
    is_function = name in LENT or name in names.functions or name in ELSEWHERE.values()
    meant = name if is_function else names.meant(name)
    return _with(said, None if meant is None else f"did you mean '{meant}()'?")


def _of_kinds(
    said: str, *hints: tuple[int, str, str]
) -> Callable[[re.Match[str], ScriptNames], str]:
    """Return what says a sentence with the names of types in it: the words of group 1 and of group 2.

    A hint is for a type of the engine in one of the groups.
    """

    def worded(found: re.Match[str], names: ScriptNames) -> str:
        hint = next((hint for group, kind, hint in hints if found[group] == kind), None)
        return _with(said.format(found[1], _kind(found[1]), _kind(found[2])), hint)

    return worded


def _no_variable(found: re.Match[str], names: ScriptNames) -> str:
    name, sign, constant = found[1].rpartition("::")
    if sign:
        return (
            f"'{name}::' finds no constant '{constant}':"
            f" const {constant} = ... has to stand before it, outside of every block"
        )
    return f"there is no variable '{constant}': a function sees only what it is handed"


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
            _of_kinds(
                "{2} has no property '{0}' to write",
                (2, "()", f"{NOTHING}; make it a map first, #{{}}"),
            ),
        ),
        (
            r"Indexer unavailable: (.+?) \[(.+?)\](?: = .*)?",
            _of_kinds("{1} has no element for {2} in brackets", (1, "()", NOTHING)),
        ),
        (
            r"Data type incorrect: (.*) \(expecting (.*)\)",
            _of_kinds(
                "expected {2}, found {1}",
                (1, "()", NOTHING),
                (2, "bool", "compare it, as in x > 0"),
            ),
        ),
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


# --- what would do where a script does not compile, as far as its text shows what was meant

RETURNED = re.compile(r"(\breturn\b[^;]+;?|[\w)\]\"`])\s*\Z")
"""How a script ends whose last value is thought to count."""
LAST = 1000
"""Characters at the end of a script that are looked at for that."""
COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)

WORDS = {
    "False": "false",
    "None": "()",
    "True": "true",
    "and": "&&",
    "console": "print",
    "def": "fn",
    "elif": "else if",
    "elseif": "else if",
    "elsif": "else if",
    "foreach": "for",
    "function": "fn",
    "nil": "()",
    "not": "!",
    "null": "()",
    "or": "||",
    "undefined": "()",
    "var": "let",
}
"""Words of other languages, and what is written here."""

SIGNS = {
    "++": "write += 1",
    "--": "write -= 1; a comment starts with //",
    "?": "write if a { b } else { c }",
    "#": "a comment starts with //, a map with #{",
    "fn": "a closure is written |x| ...",
}
"""Signs of other languages, where no value can stand."""

MESSAGES = {
    "Expecting '{' to start a statement block": "a block stands in braces, also a single statement",
    "Expecting literal expression": "write switch x { 1 => ..., _ => ... }",
    "Expecting '=>' in this switch case": "write switch x { 1 => ..., _ => ... }",
}
"""What the engine says, and what it would have wanted."""

_LONGEST_QUOTED = 40
"""Characters of a text that is quoted in a suggestion."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_OWNER = re.compile(r"([A-Za-z_][\w.]*)\??\.\s*\Z")
_QUOTED = re.compile(r"Invalid character: '(.*)'", re.DOTALL)
_UNDEFINED = re.compile(r"Undefined (variable|module): (.*)")
_DECLARED = re.compile(r"\b(let|const)\s+([A-Za-z_]\w*)")
_OTHER_SCOPE = {
    "batch": "'batch' is there where 'scope' is batch; this script runs for one message, 'msg'",
    "msg": "'msg' is there where 'scope' is message; this script runs for the list 'batch'",
}


def of_silence(text: str, variable: str) -> str:
    """Return what to do in a script that never calls `emit`."""
    if RETURNED.search(COMMENT.sub("", text[-LAST:])) is None:
        return f"call emit({variable}) for what is to go on"
    return f"a returned value does not count: call emit({variable})"


@dataclass(frozen=True)
class Halt:
    """Where the engine gave up: what it says, the text, the offset; ``variable`` is `msg` or `batch`."""

    message: str
    text: str
    at: int
    variable: str

    @property
    def hint(self) -> str | None:
        """What would do there, or nothing."""
        return next(filter(None, self._hints()), None)

    @property
    def before(self) -> str:
        """The text on the left, without blanks at its end."""
        return self.text[max(self.at - 100, 0) : self.at].rstrip()

    @property
    def after(self) -> str:
        """The text from there on."""
        return self.text[self.at : self.at + 100]

    @cached_property
    def word(self) -> str:
        """The word there; empty if there is none."""
        found = _WORD.match(self.text, self.at)
        return "" if found is None else found[0]

    def is_followed_by(self, pattern: str) -> bool:
        """Return whether such a text follows the word there."""
        return re.match(pattern, self.after[len(self.word) :]) is not None

    def _hints(self) -> Iterator[str | None]:
        """Yield what may be meant, the surest first."""
        if found := _QUOTED.fullmatch(self.message):
            said = found[1]
            is_plain = len(said) <= _LONGEST_QUOTED and '"' not in said and said.isprintable()
            written = f'write "{said}"' if is_plain else "write it in double quotes or backticks"
            yield f"{written}: single quotes hold one character"
        if self.message.startswith("Invalid escape sequence"):
            yield r"a backslash is written \\, or the text in backticks"
        opens = re.search(r'(?<!#)\{\s*("[^"]*")?\Z', self.before)
        if opens and self.is_followed_by(r"\s*:(?!:)"):
            yield "a map is written #{ ... }"
        is_known = self.word and not self.message.startswith("Undefined")
        if is_known and self.before.endswith("."):
            owner = _OWNER.search(self.before)
            yield f'a field of that name is {owner[1] if owner else "msg"}["{self.word}"]'
        if is_known and self.before.endswith(("{", ",")) and self.is_followed_by(r"\s*:"):
            yield f'a field of that name is written "{self.word}"'
        if other := WORDS.get(self.word):
            yield f"did you mean '{other}'?"
        if any(each in self.message for each in ("perator", "symbol", "'fn'")):
            yield from (hint for sign, hint in SIGNS.items() if self.after.startswith(sign))
        if re.search(r"\bfor\s*\(\Z", self.before):
            yield "write for i in 0..3 { ... }"
        yield MESSAGES.get(self.message)
        if found := _UNDEFINED.fullmatch(self.message):
            yield from self._of_undefined(found[2], is_module=found[1] == "module")

    def _of_undefined(self, name: str, *, is_module: bool) -> Iterator[str | None]:
        """Yield what is known of a variable or a module that is not there."""
        aliases = re.findall(r"\bas\s+([A-Za-z_]\w*)", self.text)
        if self.before.endswith("import"):
            yield "the path of an import stands in double quotes"
        if name in aliases and (called := re.match(r"\w+\.(\w+)", self.after)):
            yield f"did you mean '{name}::{called[1]}'?"
        if is_module:
            if unnamed := re.search(r'\bimport\s+("[^"\n]*")[;\n]', self.text):
                yield f"write import {unnamed[1]} as {name}"
            yield did_you_mean(name, aliases)
        declared = {name: how for how, name in _DECLARED.findall(self.text)}
        if name == self.variable or declared.get(name) == "let":
            yield "a function sees only what it is handed, and a variable ends with its block"
        if name in declared:
            yield f"in a function it is global::{name}"
        if self.is_followed_by(r"\)?\s*=>"):
            yield "a closure is written |x| ..."
        if self.is_followed_by(r"""["'`]"""):
            yield "text with values in it is written `... ${msg.name} ...`"
        if name in LENT:
            yield f"it is a function: {name}({'...' if LENT[name] else ''})"
        yield _OTHER_SCOPE.get(name)
        if self.is_followed_by(r"\s*=(?!=)") and re.search(r"(^|[;{}])\Z", self.before):
            yield f"a new variable is written let {name} = ..."
        if name in ("message", "messages"):
            yield f"did you mean '{self.variable}'?"
        yield did_you_mean(name, {**declared, self.variable: ""})
