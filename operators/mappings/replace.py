"""The mapping that replaces parts of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from headrace.compiler.code import Code, TakesLong
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import SLOW_BATCH, JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.errors import BatchFailed
from headrace.compiler.patterns import PatternRefused, Replacement, pattern
from headrace.compiler.schema.fields import Boolean, Text
from headrace.compiler.schema.patterntext import PatternText
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.text.diagnostics import Fault, Severity
from headrace.compiler.texttemplates import LONGEST_TEXT, TOO_LONG
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_READ,
    OfField,
    as_option,
    default_option,
    from_option,
    present,
    short,
)

_CHARACTER, _WRITTEN, _SHORT = 11, 2, 10_000
"""Nanoseconds that a text takes for a character in which another one is replaced, and for one that it
becomes; characters that it may become in too little time to be added up."""
USUAL_BYTES = 3_000
"""Of a text in which all matches of a pattern are replaced, unless its automaton is very large."""
_SHARE = 4
"""The longest text a pattern takes may cost eight milliseconds: a batch that is worked on at once takes at
most a quarter of that."""


class Replace(OfField, tag="replace", listed=44, elsewhere="gsub regex_replace replace_all sub"):
    """Replaces a text in a string, or what matches a regular expression: all places, or the first.

    In `with`, `$name` and `${name}` stand for what a group of the `regex` matched, and `$$` is a dollar;
    with `text` it is taken as it is. A value that is no string fails the batch, and so do one of more than
    1,048,576 characters, one that is too long for the `regex`, and a result of more than 16,777,216
    characters. With `first`, or a `regex` that begins with `^`, a text may be as long as for other patterns
    (docs/patterns.md); else it has 3,000 bytes at most.
    """

    is_never_object = True

    from_: str = from_option("Field to read.")
    text: str | None = option(
        Text(), "The text that is replaced.", default=None, elsewhere="find old search what"
    )
    regex: str | None = option(
        PatternText(),
        "The regular expression whose matches are replaced, in place of `text`.",
        default=None,
        elsewhere="match pattern re regexp",
    )
    with_: str = option(Text(), "What is put there.", elsewhere="by new replacement to value")
    first: bool = option(
        Boolean(), "Whether only the first place is replaced.", default=False, elsewhere="once"
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def rules(self) -> Iterator[Fault]:
        """Refuse two things to look for, none, and a group that is not there."""
        expected = "exactly one of text, regex"
        if self.text is not None and self.regex is not None:
            yield Fault("conflict", "it replaces one thing, not both", expected=expected)
        elif self.text == "":
            said = "an empty text is everywhere"
            yield Fault("blank", said, expected="a text, or a regex", path=("text",))
        elif self.text is None and self.regex is None:
            yield Fault(
                "missing-key",
                "there is nothing to replace: give 'text' or 'regex'",
                expected=expected,
            )
        elif self.regex is not None:
            try:
                self._by_pattern  # noqa: B018  # it says what is wrong
            except PatternRefused as refused:
                yield Fault("not-a-pattern", refused.message, path=("with",))

    def examine(self) -> Iterator[Fault]:
        """Remark on a pattern for which a text has to be shorter than the page says."""
        if self.regex is not None and (longest := self._by_pattern.longest) < USUAL_BYTES:
            yield Fault(
                "shorter-texts",
                f"this pattern is replaced in texts of at most {longest:,} bytes: a longer one fails",
                expected="a pattern that begins with '^' and of which each character says how to go on",
                suggestion=None if self.first else "set 'first' to true where one place is enough",
                path=("regex",),
                severity=Severity.WARNING,
            )

    @property
    def takes_long(self) -> bool:  # type: ignore[override]  # depends on what is looked for
        """Whether it looks for a pattern."""
        return self.regex is not None

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the text with something else in it."""
        found = present(self.from_, message)
        if found is MISSING:
            return MISSING
        if type(found) is not str:
            raise BatchFailed(f"field '{self.from_}' is {json_type(found)}: expected a string")
        if self.regex is None:
            return self._replaced(short(found, self.from_, LONGEST_READ))
        made = self._by_pattern.replaced(found)
        if made is not None:
            return made
        if self._by_pattern.is_too_long(found):
            most = self._by_pattern.longest
            raise BatchFailed(
                f"field '{self.from_}' is too long: its regex takes at most {most:,} bytes"
            )
        raise BatchFailed(TOO_LONG)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Read it and replace; what is too long for one turn is left to a slower way."""
        found = code.read(Path(self.from_), optional=optional)
        if self.regex is None:
            self.spend(code, found, _CHARACTER, LONGEST_READ, optional=optional)
            made = Formula(self._plainly(found, code), [found], raises_on_none=True)
            if len(self.with_) <= len(self.text or ""):
                return made
            cost, costs_if = f"{_WRITTEN} * len({{0}})", f"len({{0}}) > {_SHORT}"
            return replace(made, cost=cost, costs_if=costs_if)
        most, turn = code.name("most"), self._most(SLOW_BATCH)
        is_text = f"{found}.__class__ is str and"
        code.before(f"{most} = {code.constant(self._most, 'most')}({code.sharing})")
        with code.only(in_slices=False), code.block(f"if {is_text} len({found}) > {most}:"):
            code.line(f"raise {code.constant(TakesLong, 'TakesLong')}")
        with code.only(in_slices=True), code.block(f"if {is_text} len({found}) > {turn}:"):
            code.line("yield")
        replaced = code.constant(self._by_pattern.replaced, "replaced")
        within = "{0}.__class__ is str"
        return Formula(f"{replaced}({found})", [found], raises_on_none=True, within=within)

    @cached_property
    def _by_pattern(self) -> Replacement:
        """What replaces the matches of the pattern."""
        return pattern(self.regex or "").replacement(self.with_, first=self.first)

    def _most(self, texts: int) -> int:
        """Return how many characters one of so many texts may have that are worked on at once.

        Time grows with the length, and with its square where all matches are replaced.
        """
        share = 1 / (_SHARE * texts)
        return int(self._by_pattern.longest * (share if self.first else share**0.5))

    def _plainly(self, found: str, code: Code) -> str:
        """Return the replacing of a text as source: a call of ours where the result may be longer."""
        old, new = self.text or "", self.with_
        if len(new) > len(old):
            replaced: Callable[[str], str] = self._replaced
            return f"{code.constant(replaced, 'replaced')}({found})"
        arguments = [code.constant(old, "old"), code.constant(new, "new")]
        return f"{found}.replace({', '.join([*arguments, *(['1'] if self.first else [])])})"

    def _replaced(self, found: str) -> str:
        """Return a text with another one in it.

        Raises:
            BatchFailed: it would be too long.
        """
        old, new, count = self.text or "", self.with_, 1 if self.first else -1
        if len(new) > len(old):
            places = 1 if self.first else found.count(old)
            if len(found) + places * (len(new) - len(old)) > LONGEST_TEXT:
                raise BatchFailed(TOO_LONG)
        return found.replace(old, new, count)
