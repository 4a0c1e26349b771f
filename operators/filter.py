"""The `filter` transform: which messages go on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Self

from headrace.compiler.code import Code, GiveUp
from headrace.compiler.component.branches import Branch, Took, altered, telling
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import (
    Condition,
    all_counted,
    keep_where,
    keeping,
    narrowed,
    outcomes,
    unmet,
    use_where,
)
from headrace.compiler.component.failingmessages import NEVER_FAILS
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.operators.filtervariants import Numeric, String


class Filter(PerMessage, kind="filter", listed=5, elsewhere="condition match where"):
    """Hand on the messages that match, in order; drop the rest, and the batch when none match.

    `when` is a list of conditions that all have to hold; what is missing, or of another type, makes one
    false and is not told. `Numeric` and `String` are one condition by itself: a message without the
    field, or with a value of another type in it, is dropped, and the first one is told in a warning.
    """

    lacks: ClassVar = NEVER_FAILS

    one_of = ("Numeric", "String", "when")

    numeric: Numeric | None = option(
        RecordOf(Numeric), "Match by number.", default=None, wire="Numeric", elsewhere="number"
    )
    string: String | None = option(
        RecordOf(String), "Match by string.", default=None, wire="String", elsewhere="text"
    )
    when: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        "Conditions that all have to hold.",
        default=(),
        additive=True,
        elsewhere="condition conditions if where",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse several of what says which messages go on, and none."""
        expected = "exactly one of " + ", ".join(self.one_of)
        given = [wire for wire in self.one_of if self.values()[wire]]
        if not given:
            yield Fault(
                "missing-key",
                "a filter needs a condition",
                expected=expected,
                suggestion="add 'when' with what messages have to be that go on",
            )
        elif len(given) > 1:
            said = "a filter has one condition, not both"
            if "when" in given:
                said = f"a filter has either 'when' or '{given[0]}'"
            yield Fault("conflict", said, expected=expected)

    @property
    def condition(self) -> Numeric | String | None:
        """The one condition, if it is spelt by itself."""
        return self.numeric or self.string

    def field_use(self) -> FieldUse:
        """It reads what it looks at, changes nothing, and hands on nothing without what it needs."""
        if self.condition is not None:
            field = self.condition.field
            return FieldUse.of(reads=[field], drops_without=[field])
        return use_where(self.when)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Each condition is true; it is false."""
        if self.condition is None:
            yield from outcomes(self.when, "when")
            return
        for outcome in ("true", "false"):
            said = f"the condition on '{self.condition.field}' was never {outcome}"
            yield Branch(outcome, said, (self._variant,))

    def counting(self, took: Took) -> Self:
        """Return one with conditions that tell."""
        if self.condition is None:
            return altered(self, when=all_counted(self.when, took, "when"))
        variant = self._variant

        def tell(matches: bool | None) -> None:
            took("true" if matches else "false", variant)

        attribute = self.options()[variant].attribute
        return altered(self, **{attribute: telling(self.condition, "matches", tell)})

    @property
    def _variant(self) -> str:
        """The option that the condition stands under."""
        return "Numeric" if self.numeric is not None else "String"

    def passes(self, before: Passing) -> Passing:
        """Return the same, narrowed to the values it lets through."""
        if self.condition is not None:
            after = super().passes(before)
            return after.where(self.condition.field, self.condition.matching)
        return narrowed(self.when, before)

    def step(self, ctx: Context) -> Step:
        """Return the plain form: look at one message after the other."""
        if self.condition is not None:
            return partial(_kept_by, self.condition, ctx)
        return keeping(self.when)

    def generate(self, code: Code, ctx: Context) -> None:
        """Write the conditions."""
        if self.condition is not None:
            _generate(self.condition, code, ctx)
            return
        keep_where(self.when, code)

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return the value it found, and the condition that it does not fulfil."""
        condition = self.condition
        if condition is None:
            return unmet(self.when, message)
        found = Path(condition.field).read(message)
        is_ = "missing" if found is MISSING else shown(found)
        wanted = f"{condition.operator} {shown(condition.value)}"
        return f"'{condition.field}' is {is_}, and the condition is {wanted}"


def _kept_by(condition: Numeric | String, ctx: Context, batch: Batch) -> list[Batch]:
    """Return the messages that match, and warn of the first one without the wanted value."""
    path, mismatch, kept = Path(condition.field), _mismatch(condition), []
    for message in batch:
        matches = condition.matches(path.read(message))
        if matches is None:
            ctx.warn_once(mismatch)
        elif matches:
            kept.append(message)
    return [kept] if kept else []


def _generate(condition: Numeric | String, code: Code, ctx: Context) -> None:
    """Write the same as source."""
    text = _mismatch(condition)

    def is_mismatch() -> bool:
        # Only what is surely not the first one is dropped here: the plain form warns, in the
        # order of messages and components, and not at all if the batch fails before.
        if not ctx.has_warned(text):
            raise GiveUp
        return False

    found = code.read(Path(condition.field))
    mismatch = code.constant(is_mismatch, "mismatch")
    code.keep_if(condition.source(code, found, f"{mismatch}()"))
    if isinstance(condition, Numeric):
        code.know(code.is_number(found))


def _mismatch(condition: Numeric | String) -> str:
    """Return what is said of a message without the wanted value, the first time."""
    return f"dropped a message whose '{condition.field}' is not {condition.wanted}"
