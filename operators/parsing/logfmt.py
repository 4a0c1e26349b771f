"""The preset `logfmt`: ``at=info path="/a b" cached``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.operators.parsing.escapes import unescaped
from headrace.operators.parsing.form import MOST_NAMES, Fields, TextForm
from headrace.operators.parsing.values import FieldValues, Mismatch

# Nothing is given back (`++`), and what is no pair takes all the rest: each character is looked at twice
# at most.
_PAIR = re.compile(
    r'([^\s="]++)(?:(=)(?:"((?:[^"\\]++|\\.)*+)"|([^\s"]*+))(?!\S))?+(?!\S)|(\S(?s:.*+))'
)
_MEANT = {'\\"': '"', "\\/": "/", "\\n": "\n", "\\r": "\r", "\\t": "\t"}

_FEW = 2 * MOST_NAMES
"""Characters of a text that has no more pairs than are taken: one needs a letter and a blank."""


class Logfmt(TextForm):
    """Names and values with `=` between them and blanks around; a name alone is true.

    Quotes hold what has blanks, and in them ``\\"``, ``\\\\``, ``\\n``, ``\\r`` and ``\\t`` stand for
    characters. Source: https://pkg.go.dev/github.com/kr/logfmt
    """

    word = "logfmt"
    usual_nulls = ("-",)

    def reader(self, values: FieldValues, ctx: Context) -> Callable[[str], Fields]:
        """Return what finds the pairs; of a name that comes twice the last one counts."""
        types, nulls, of = values.types, values.nulls, values.of

        def read(text: str) -> Fields:
            found: dict[str, JsonValue] = {}
            for name, is_given, quoted, bare, other in _pairs(text):
                if other:
                    raise Mismatch
                if not is_given:
                    found[name] = True
                    continue
                value = quoted or bare
                if "\\" in quoted:
                    value = unescaped(quoted, _MEANT)
                found[name] = of(name, value) if name in types or value in nulls else value
            return found

        return read


def _pairs(text: str) -> Iterable[tuple[str, ...]]:
    """Return what is found, as the groups of the pattern.

    Raises: `Mismatch` where that is too much.
    """
    if len(text) <= _FEW:
        return _PAIR.findall(text)
    found = [match.groups("") for match in islice(_PAIR.finditer(text), MOST_NAMES + 1)]
    if len(found) > MOST_NAMES:
        raise Mismatch(f"more than {MOST_NAMES:,} pairs")
    return found
