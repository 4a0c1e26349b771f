"""The form of a text that a pattern describes: each named group is a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.compiler.code import Code
from headrace.compiler.patterns import Pattern, pattern
from headrace.operators.parsing.form import InOrder, Insist
from headrace.operators.parsing.values import Mismatch


@dataclass(frozen=True)
class RegexForm(InOrder):
    """A pattern, found anywhere in the text."""

    regex: str
    word = "regex"

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern, compiled. That it compiles is known from its option."""
        return pattern(self.regex)

    @property
    def takes_milliseconds(self) -> bool:
        """Unless each character says how to go on."""
        return not self.pattern.is_one_pass

    @property
    def longest(self) -> int:
        """As the pattern has it."""
        return self.pattern.longest

    @property
    def parts(self) -> Sequence[str]:
        """The names of the groups."""
        return self.pattern.names

    def cut(self, text: str) -> Sequence[str | None]:
        """Return the groups."""
        found = self.pattern.groups(text)
        if found is None:
            if self.pattern.is_too_long(text):
                most = self.pattern.longest
                raise Mismatch(f"this pattern searches at most {most:,} bytes of text")
            raise Mismatch
        return found

    def cut_source(self, code: Code, text: str, demand: Insist) -> str:
        """Call the extension."""
        found = code.let(f"{code.constant(self.pattern.groups, 'groups')}({text})", "groups")
        demand(f"{found} is not None")
        return found

    def may_be_none(self, index: int) -> bool:
        """Any group may have taken no part."""
        return True
