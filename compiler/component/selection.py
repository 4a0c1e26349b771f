"""What `when` of an output or of a reader does to a batch: the same as a filter, in front of somebody.

It is no transform of a config. It is lowered as one, so it has a plain form, a generated one, a counting
one, and reasons.
"""

from __future__ import annotations

from typing import Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Took, altered
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.conditions import (
    Condition,
    all_counted,
    keep_where,
    keeping,
    unmet,
    when_taken,
)
from headrace.compiler.component.families import PerMessage
from headrace.compiler.delivery import JsonValue


class Selection(PerMessage):
    """Hands on the messages for which all conditions hold."""

    when: tuple[Condition, ...] = when_taken("Conditions that all have to hold.")

    def step(self, ctx: Context) -> Step:
        """Return the plain form: look at one message after the other."""
        return keeping(self.when)

    def generate(self, code: Code, ctx: Context) -> None:
        """Write the conditions."""
        keep_where(self.when, code)

    def counting(self, took: Took) -> Self:
        """Return one with conditions that tell."""
        return altered(self, when=all_counted(self.when, took, "when"))

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return why the first condition that does not hold does not."""
        return unmet(self.when, message)
