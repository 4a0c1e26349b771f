"""The mapping that takes out what is null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.compiler.code import USUAL, Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Boolean
from headrace.compiler.schema.records import option
from headrace.operators.keptfields import ChangedFields, Kept
from headrace.operators.mappings.root import Mapping, Policy, Rewrite

_MOST_VALUES = 25_000
"""Values of a message that are looked at: some milliseconds."""
_VALUE = 120
"""Nanoseconds that one takes, at most."""
_CONTAINER = 3
"""What a list or an object counts: to make one takes as long as to look at so many values."""


class DropNulls(
    Mapping, tag="drop_nulls", listed=85, elsewhere="compact drop_null remove_nulls without_nulls"
):
    """Removes the fields that are null. Objects that become empty stay.

    A message with more than 25,000 fields fails the batch; with `nested`, one with as many values in all,
    of which a list or an object counts as three.
    """

    nested: bool = option(
        Boolean(),
        "Whether those of objects inside the message go as well, also in lists. Null as an item of a list "
        "stays, as it holds a place.",
        default=False,
        elsewhere="deep recursive",
    )

    def is_seen_by(self, read: set[str]) -> bool:
        """A null may be in the way of anything that is written later."""
        return True

    def change(self, message: JsonValue, on_missing: str, ctx: Context) -> Rewrite | None:
        """Look at each field."""
        return self._without

    def _without(self, written: dict[str, Any]) -> dict[str, Any]:
        if self.nested:
            return _Nested().without_all(written)
        if len(written) > _MOST_VALUES:
            raise _too_many()
        return {key: value for key, value in written.items() if value is not None}

    def generate(self, code: Code, ctx: Context, policy: Policy) -> Sequence[Kept]:
        """Make the object anew, in one go where nothing is nested."""
        if self.nested:
            return self._generate_nested(code, policy)
        if policy.is_seen:
            message = code.message
            code.give_up_unless(f"{message}.__class__ is dict")
            code.spend(
                f"{_VALUE} * len({message})",
                f"len({message}) > {USUAL}",
                within=f"len({message}) <= {_MOST_VALUES}",
            )
            items = f"for key, each in {message}.items() if each is not None"
            code.replace(f"{{key: each {items}}}")
        without: Callable[..., Any] = self._without
        return [ChangedFields(code.constant(without, "without"))] if policy.is_kept else []

    def _generate_nested(self, code: Code, policy: Policy) -> Sequence[Kept]:
        """Call what goes into lists and objects, and say how much it has looked at."""
        nested = code.name("nested")
        code.before(f"{nested} = {code.constant(_Nested, 'Nested')}()")
        looked = f"{nested}.looked"
        cost = f"{_VALUE} * {looked}", f"{looked} > {USUAL}"
        if policy.is_seen:
            message = code.message
            code.give_up_unless(f"{message}.__class__ is dict")
            left = code.let(f"{nested}.without_if_few({message})", "left")
            code.spend(*cost)
            code.give_up_unless(f"{left} is not None")
            code.replace(left)
        return [ChangedFields(f"{nested}.without_all", cost=cost)] if policy.is_kept else []


class _Nested:
    """Takes out the nulls of one message after the other, and counts what it looks at."""

    def __init__(self) -> None:
        self.looked = 0
        """Values of the last one that it has looked at, a list or an object as several."""

    def without_all(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message without the nulls in it."""
        self.looked = 0
        kept: dict[str, Any] = self.without(message)
        return kept

    def without_if_few(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the same, or None where it has too many values: what it took is told even then."""
        try:
            return self.without_all(message)
        except BatchFailed:
            return None

    def without(self, value: JsonValue) -> JsonValue:
        """Return a value without the nulls in its objects."""
        if value.__class__ is dict:
            self._count(len(value))
            return {
                key: self.without(each) if each.__class__ in _HOLDING else each
                for key, each in value.items()
                if each is not None
            }
        self._count(len(value))
        return [self.without(each) if each.__class__ in _HOLDING else each for each in value]

    def _count(self, more: int) -> None:
        self.looked += more + _CONTAINER
        if self.looked > _MOST_VALUES:
            raise _too_many()


_HOLDING = frozenset({dict, list})


def _too_many() -> BatchFailed:
    return BatchFailed(f"the message has more than {_MOST_VALUES:,} values")
