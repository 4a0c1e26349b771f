"""The `filter` transform: which messages go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.lowering.code import Code, GiveUp
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.operators.conditions import Numeric, String, counted, outcomes


class Filter(PerMessage, kind="filter", listed=5, elsewhere="condition match where"):
    """Hand on the messages that match, in order; drop the rest, and the batch when none match.

    A message without the field, or with a value of another type in it, is dropped. The first one is
    told in a warning.
    """

    one_of = ("Numeric", "String")

    numeric: Numeric | None = option(
        RecordOf(Numeric), "Match by number.", default=None, wire="Numeric", elsewhere="number"
    )
    string: String | None = option(
        RecordOf(String), "Match by string.", default=None, wire="String", elsewhere="text"
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

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """The condition is true; it is false."""
        return outcomes(self.condition, self._variant)

    def counting(self, took: Took) -> Self:
        """Return one with a condition that tells."""
        attribute = self.options()[self._variant].attribute
        return altered(self, **{attribute: counted(self.condition, took, self._variant)})

    @property
    def _variant(self) -> str:
        """The option that the condition stands under."""
        return next(key for key in self.one_of if self.values()[key] is self.condition)

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

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return the value it found, and the condition that it does not fulfil."""
        condition = self.condition
        found = Path(condition.field).read(message)
        is_ = "missing" if found is MISSING else shown(found)
        wanted = f"{condition.operator} {shown(condition.value)}"
        return f"'{condition.field}' is {is_}, and the condition is {wanted}"

    @property
    def _mismatch(self) -> str:
        """What is said of a message without the wanted value, the first time."""
        return f"dropped a message whose '{self.condition.field}' is not {self.condition.wanted}"
