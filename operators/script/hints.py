"""What would do where a script does not compile, as far as its text shows what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.compiler.text.suggest import did_you_mean
from headrace.operators.script.names import LENT

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

LONGEST = 40
"""Characters of a text that is quoted in a suggestion."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_OWNER = re.compile(r"([A-Za-z_][\w.]*)\??\.\s*\Z")
_QUOTED = re.compile(r"Invalid character: '(.*)'", re.DOTALL)
_UNDEFINED = re.compile(r"Undefined (variable|module): (.*)")
_DECLARED = re.compile(r"\b(let|const)\s+([A-Za-z_]\w*)")


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
        return next((hint for each in _HINTS if (hint := each(self)) is not None), None)

    @property
    def before(self) -> str:
        """The text on the left, without blanks at its end."""
        return self.text[max(self.at - 100, 0) : self.at].rstrip()

    @property
    def after(self) -> str:
        """The text from there on."""
        return self.text[self.at : self.at + 100]

    @cached_property
    def word(self) -> str | None:
        """The word there."""
        found = _WORD.match(self.text, self.at)
        return None if found is None else found[0]

    def is_followed_by(self, pattern: str) -> bool:
        """Return whether such a text follows the word there."""
        return re.match(pattern, self.after[len(self.word or "") :]) is not None


def _of_quotes(halt: Halt) -> str | None:
    found = _QUOTED.fullmatch(halt.message)
    if found is None:
        return None
    is_plain = len(found[1]) <= LONGEST and '"' not in found[1] and found[1].isprintable()
    written = f'write "{found[1]}"' if is_plain else "write it in double quotes or backticks"
    return f"{written}: single quotes hold one character"


def _of_escape(halt: Halt) -> str | None:
    if not halt.message.startswith("Invalid escape sequence"):
        return None
    return r"a backslash is written \\, or the text in backticks"


def _of_field(halt: Halt) -> str | None:
    """Return what would do if the word there is meant as the name of a field."""
    if halt.word is None or halt.message.startswith("Undefined"):
        return None
    if halt.before.endswith("."):
        owner = _OWNER.search(halt.before)
        return f'a field of that name is {owner[1] if owner else "msg"}["{halt.word}"]'
    if halt.before.endswith(("{", ",")) and halt.is_followed_by(r"\s*:"):
        return f'a field of that name is written "{halt.word}"'
    return None


def _of_map(halt: Halt) -> str | None:
    opens = re.search(r'(?<!#)\{\s*("[^"]*")?\Z', halt.before)
    return "a map is written #{ ... }" if opens and halt.is_followed_by(r"\s*:(?!:)") else None


def _of_word(halt: Halt) -> str | None:
    other = WORDS.get(halt.word or "")
    return None if other is None else f"did you mean '{other}'?"


def _of_sign(halt: Halt) -> str | None:
    if (
        "perator" not in halt.message
        and "symbol" not in halt.message
        and "'fn'" not in halt.message
    ):
        return None
    return next((hint for sign, hint in SIGNS.items() if halt.after.startswith(sign)), None)


def _of_loop(halt: Halt) -> str | None:
    is_counted = re.search(r"\bfor\s*\(\Z", halt.before)
    return "write for i in 0..3 { ... }" if is_counted else None


def _of_message(halt: Halt) -> str | None:
    return MESSAGES.get(halt.message)


def _of_module(halt: Halt) -> str | None:
    found = _UNDEFINED.fullmatch(halt.message)
    if found is None:
        return None
    name, text = found[2], halt.text
    aliases = re.findall(r"\bas\s+([A-Za-z_]\w*)", text)
    if halt.before.endswith("import"):
        return "the path of an import stands in double quotes"
    if name in aliases and (called := re.match(r"\w+\.(\w+)", halt.after)):
        return f"did you mean '{name}::{called[1]}'?"
    if found[1] == "variable":
        return None
    if unnamed := re.search(r'\bimport\s+("[^"\n]*")[;\n]', text):
        return f"write import {unnamed[1]} as {name}"
    return did_you_mean(name, aliases)


def _of_variable(halt: Halt) -> str | None:
    """Return what is known of a variable that is not there."""
    found = _UNDEFINED.fullmatch(halt.message)
    if found is None:
        return None
    name, declared = found[2], {name: how for how, name in _DECLARED.findall(halt.text)}
    if name == halt.variable or declared.get(name) == "let":
        return "a function sees only what it is handed, and a variable ends with its block"
    if name in declared:
        return f"in a function it is global::{name}"
    if halt.is_followed_by(r"\)?\s*=>"):
        return "a closure is written |x| ..."
    if halt.is_followed_by(r"""["'`]"""):
        return "text with values in it is written `... ${msg.name} ...`"
    if name in LENT:
        return f"it is a function: {name}({'...' if LENT[name] else ''})"
    if name in ("msg", "batch"):
        return _OTHER_SCOPE[name]
    if halt.is_followed_by(r"\s*=(?!=)") and re.search(r"(^|[;{}])\Z", halt.before):
        return f"a new variable is written let {name} = ..."
    known = {**declared, halt.variable: ""}
    return f"did you mean '{halt.variable}'?" if name in _MESSAGE else did_you_mean(name, known)


_MESSAGE = ("message", "messages")
_OTHER_SCOPE = {
    "batch": "'batch' is there where 'scope' is batch; this script runs for one message, 'msg'",
    "msg": "'msg' is there where 'scope' is message; this script runs for the list 'batch'",
}

_HINTS: Sequence[Callable[[Halt], str | None]] = (
    _of_quotes,
    _of_escape,
    _of_map,
    _of_field,
    _of_word,
    _of_sign,
    _of_loop,
    _of_message,
    _of_module,
    _of_variable,
)
"""Who may know, the surest first."""
