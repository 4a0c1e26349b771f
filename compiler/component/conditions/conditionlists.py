"""Lists of conditions, of which all have to hold: tested, written as source, counted, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took
from headrace.compiler.component.conditions.condition import Condition
from headrace.compiler.delivery import JsonValue


def all_hold(conditions: Sequence[Condition]) -> Callable[[JsonValue], bool]:
    """Return the test whether all conditions hold for a message, the plain and slow one."""
    return lambda message: all(each.holds(message) for each in conditions)


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
