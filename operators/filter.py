"""The `filter` transform: which messages go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.language.context import Context, Step
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.families import PerMessage
from headrace.compiler.language.fieldflow import FieldUse, Passing
from headrace.compiler.language.fields import Choice, DottedPath, Number, RecordOf, Text
from headrace.compiler.language.records import Record, option
from headrace.compiler.language.values import Values
from headrace.compiler.lowering.code import GiveUp
from headrace.compiler.lowering.paths import DottedPath as Path

if TYPE_CHECKING:
    from headrace.compiler.lowering.code import Code

_SIGNS = {"greater_than": ">", "less_than": "<", "equal_to": "=="}


class Numeric(Record):
    """Compares a number. A boolean is none."""

    field: str = option(DottedPath(), "Field to look at.")
    operator: str = option(Choice("greater_than", "less_than", "equal_to"), "How to compare.")
    value: float = option(Number(), "Number to compare with.")

    wanted: ClassVar = "a number"

    @property
    def matching(self) -> Values:
        """The numbers that match."""
        if self.operator == "greater_than":
            return Values(above=self.value)
        if self.operator == "less_than":
            return Values(below=self.value)
        return Values(equal=self.value)

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is no number."""
        if type(found) not in (int, float):
            return None
        if self.operator == "greater_than":
            return bool(found > self.value)
        if self.operator == "less_than":
            return bool(found < self.value)
        return bool(found == self.value)

    def source(self, code: Code, found: str, mismatch: str) -> str:
        """Return the condition as source; ``mismatch`` is called for another type and is false.

        A boolean compares like 0 or 1. Where neither would pass, types are looked at on the way out only.
        """
        compared = f"{found} {_SIGNS[self.operator]} {code.constant(self.value, 'value')}"
        if code.is_hopeful and not (self.matches(0) or self.matches(1)):
            return f"{compared} or not {code.is_number(found)} and {mismatch}"
        return f"{compared} if {code.is_number(found)} else {mismatch}"


class String(Record):
    """Compares a string, case-sensitive. The empty string is contained in every string."""

    field: str = option(DottedPath(), "Field to look at.")
    operator: str = option(Choice("equal_to", "contains"), "How to compare.")
    value: str = option(Text(), "String to compare with.")

    wanted: ClassVar = "a string"

    @property
    def matching(self) -> Values:
        """The strings that match."""
        is_whole = self.operator == "equal_to"
        return Values(equal=self.value) if is_whole else Values(containing=self.value)

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is no string."""
        if type(found) is not str:
            return None
        return self.value == found if self.operator == "equal_to" else self.value in found

    def source(self, code: Code, found: str, mismatch: str) -> str:
        """Return the condition as source; ``mismatch`` is called for another type and is false."""
        value = code.constant(self.value, "value")
        if self.operator == "equal_to":
            return f"{found} == {value} or {found}.__class__ is not str and {mismatch}"
        return f"{value} in {found} if {found}.__class__ is str else {mismatch}"


class Filter(PerMessage, kind="filter", listed=5):
    """Hand on the messages that match, in order; drop the rest, and the batch when none match.

    A message without the field, or with a value of another type in it, is dropped. The first one is
    told in a warning.
    """

    one_of = ("Numeric", "String")

    numeric: Numeric | None = option(
        RecordOf(Numeric), "Match by number.", default=None, wire="Numeric"
    )
    string: String | None = option(
        RecordOf(String), "Match by string.", default=None, wire="String"
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse both variants at once, and none."""
        expected = "exactly one of " + ", ".join(self.one_of)
        if self.numeric is None and self.string is None:
            yield Fault("missing-key", "a filter needs a condition", expected=expected)
        elif self.numeric is not None and self.string is not None:
            yield Fault("conflict", "a filter has one condition, not both", expected=expected)

    @property
    def condition(self) -> Numeric | String:
        """The one condition there is."""
        return self.numeric or self.string  # type: ignore[return-value]  # rules() saw to it

    def field_use(self) -> FieldUse:
        """It reads one field, which every message it hands on has, and changes nothing."""
        return FieldUse.of(reads=[self.condition.field], drops_without=[self.condition.field])

    def passes(self, before: Passing) -> Passing:
        """Return the same, narrowed to the values it lets through."""
        return super().passes(before).where(self.condition.field, self.condition.matching)

    def step(self, ctx: Context) -> Step:
        """Return the plain form: look at one message after the other."""
        path, condition, mismatch = Path(self.condition.field), self.condition, self._mismatch

        def filtered(batch: Batch) -> list[Batch]:
            kept = []
            for message in batch:
                matches = condition.matches(path.read(message))
                if matches is None:
                    ctx.warn_once(mismatch)
                elif matches:
                    kept.append(message)
            return [kept] if kept else []

        return filtered

    def generate(self, code: Code, ctx: Context) -> None:
        """Write the condition."""

        def is_mismatch() -> bool:
            # Only what is surely not the first one is dropped here: the plain form warns, in the
            # order of messages and components, and not at all if the batch fails before.
            if not ctx.has_warned(text):
                raise GiveUp
            return False

        text = self._mismatch
        found = code.read(Path(self.condition.field))
        mismatch = code.constant(is_mismatch, "mismatch")
        code.keep_if(self.condition.source(code, found, f"{mismatch}()"))
        if self.numeric:
            code.know(code.is_number(found))

    @property
    def _mismatch(self) -> str:
        """What is said of a message without the wanted value, the first time."""
        return f"dropped a message whose '{self.condition.field}' is not {self.condition.wanted}"
