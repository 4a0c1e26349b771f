"""Lists of conditions, of which all have to hold: tested, written as source, counted, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took
from headrace.compiler.component.conditions.condition import Condition
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf


def when_taken(
    doc: str, *, elsewhere: str = "condition conditions filter if match only_if route where"
) -> Any:
    """Return the option of what a message has to be that somebody takes; usually left out."""
    return option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        doc,
        default=(),
        additive=True,
        elsewhere=elsewhere,
    )


def all_hold(conditions: Sequence[Condition]) -> Callable[[JsonValue], bool]:
    """Return the test whether all conditions hold for a message, the plain and slow one."""
    return lambda message: all(each.holds(message) for each in conditions)


def keeping(conditions: Sequence[Condition]) -> Callable[[Batch], list[Batch]]:
    """Return the step that hands on the messages for which all conditions hold, the plain and slow one."""
    holds = all_hold(conditions)

    def kept(batch: Batch) -> list[Batch]:
        messages = [message for message in batch if holds(message)]
        return [messages] if messages else []

    return kept


def keep_where(conditions: Sequence[Condition], code: Code) -> None:
    """Write the same as source; what follows from the conditions is taken for granted from there on."""
    code.keep_if(test_of_all(conditions, code))
    for each in conditions:
        each.learn(code)


def use_where(conditions: Sequence[Condition]) -> FieldUse:
    """Return which fields somebody touches who hands on the messages for which all conditions hold."""
    return FieldUse.of(
        reads=[path for each in conditions for path in each.reads],
        drops_without=[path for each in conditions for path in each.needs],
    )


def narrowed(conditions: Sequence[Condition], before: Passing) -> Passing:
    """Return what is known of the messages for which all conditions hold."""
    after = before.after(use_where(conditions)) if conditions else before
    for each in conditions:
        for field, values in each.ranges:
            after = after.where(field, values)
    return after


def test_of_all(conditions: Sequence[Condition], code: Code) -> str:
    """Return the test whether all conditions hold, as source, and write what they read."""
    return " and ".join([each.source(code) for each in conditions])


@contextmanager
def where_all_hold(conditions: Sequence[Condition], code: Code) -> Iterator[None]:
    """Write what is written inside for those messages only for which all conditions hold.

    That one does not hold is no reason to tell: messages without the field are as usual as any.
    """
    test = test_of_all(conditions, code)
    with code.block(f"if {test}:") if test else nullcontext():
        yield


def outcomes(conditions: Sequence[Condition], *path: str | int) -> Iterator[Branch]:
    """Yield the branches of a list of conditions, which stands at a path of its component."""
    for index, each in enumerate(conditions):
        yield from each.branches(*path, index)


def all_counted(
    conditions: Sequence[Condition], took: Took, *path: str | int
) -> tuple[Condition, ...]:
    """Return conditions that tell whether they held; behind the first that does not, none is asked."""
    return tuple(each.counted(took, *path, index) for index, each in enumerate(conditions))


def unmet(conditions: Sequence[Condition], message: JsonValue) -> str:
    """Return why a list of conditions does not hold for a message: of the first that does not."""
    return next(each.unmet(message) for each in conditions if not each.holds(message))
