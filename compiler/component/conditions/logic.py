"""Conditions made of conditions: any of them, all of them, not all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.conditions.condition import Condition, found_at
from headrace.compiler.component.conditions.conditionlists import all_counted, outcomes, unmet
from headrace.compiler.component.fieldflow import ValueRange
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault

DEEPEST = 8
"""How many of these may lie inside each other."""
_SHOWN_REASONS = 3


class Combining(Condition):
    """A condition that is made of others."""

    if TYPE_CHECKING:  # at run time it is an option of each variant
        conditions: tuple[Condition, ...]

    _joint: ClassVar = " and "
    """What stands between its conditions, in words and in source."""

    def rules(self) -> Iterator[Fault]:
        """Refuse too many of them inside each other."""
        if self.depth > DEEPEST:
            yield Fault(
                "too-deep",
                f"conditions lie {self.depth} deep inside each other, and at most {DEEPEST} may",
                found=f"{self.depth} levels",
                expected=f"at most {DEEPEST}",
                path=("conditions",),
            )

    @property
    def depth(self) -> int:
        """How many of these lie inside each other, with this one."""
        inside = (each.depth for each in self.conditions if isinstance(each, Combining))
        return 1 + max(inside, default=0)

    @property
    def reads(self) -> Sequence[str]:
        """What they look at."""
        return [*dict.fromkeys(path for each in self.conditions for path in each.reads)]

    @property
    def said(self) -> str:
        """Its word, and the conditions."""
        return f"{self.tag} ({self._joint.join(each.said for each in self.conditions)})"

    @property
    def subject(self) -> str:
        """Its word, and how many conditions that is of."""
        count = len(self.conditions)
        return f"'{self.tag}' of {count} condition{'s' if count > 1 else ''}"

    def branches(self, *path: str | int) -> Iterator[Branch]:
        """Yield its own, and those of each."""
        yield from super().branches(*path)
        yield from outcomes(self.conditions, *path, "conditions")

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that tells, as those do that it asks."""
        conditions = all_counted(self.conditions, took, *path, "conditions")
        return super(Combining, altered(self, conditions=conditions)).counted(took, *path)

    def _sources(self, code: Code) -> str:
        return f"({self._joint.join(f'({each.source(code)})' for each in self.conditions)})"


def _conditions() -> Any:
    """Return the option of the conditions that one is made of."""
    return option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        "What it asks.",
        elsewhere="condition of when where",
    )


class AnyCondition(Combining, tag="any", elsewhere="at_least_one or some"):
    """Holds where at least one of its conditions does."""

    _joint: ClassVar = " or "

    conditions: tuple[Condition, ...] = _conditions()

    def holds(self, message: JsonValue) -> bool:
        """Ask one after the other, up to the first that holds."""
        return any(each.holds(message) for each in self.conditions)

    def source(self, code: Code) -> str:
        """Join them with *or*."""
        return self._sources(code)

    def unmet(self, message: JsonValue) -> str:
        """Return why none of them holds."""
        reasons = [each.unmet(message) for each in self.conditions[:_SHOWN_REASONS]]
        more = len(self.conditions) - len(reasons)
        return "; and ".join([*reasons, *([f"{more:,} more do not hold"] if more else [])])


class AllCondition(Combining, tag="all", elsewhere="and every"):
    """Holds where all of its conditions do."""

    conditions: tuple[Condition, ...] = _conditions()

    @property
    def needs(self) -> Sequence[str]:
        """What any of them needs."""
        return [*dict.fromkeys(path for each in self.conditions for path in each.needs)]

    @property
    def ranges(self) -> Iterable[tuple[str, ValueRange]]:
        """What is known where any of them holds."""
        return [known for each in self.conditions for known in each.ranges]

    def holds(self, message: JsonValue) -> bool:
        """Ask one after the other, up to the first that does not hold."""
        return all(each.holds(message) for each in self.conditions)

    def source(self, code: Code) -> str:
        """Join them with *and*."""
        return self._sources(code)

    def learn(self, code: Code) -> None:
        """What follows from any of them."""
        for each in self.conditions:
            each.learn(code)

    def unmet(self, message: JsonValue) -> str:
        """Return why the first of them that does not hold does not."""
        return unmet(self.conditions, message)


class NotCondition(Combining, tag="not", elsewhere="none nor unless"):
    """Holds where its conditions do not all hold, so also where a field is missing that they look at."""

    conditions: tuple[Condition, ...] = _conditions()

    def holds(self, message: JsonValue) -> bool:
        """Ask one after the other, up to the first that does not hold."""
        return not all(each.holds(message) for each in self.conditions)

    def source(self, code: Code) -> str:
        """Turn round what holds where they all do."""
        return f"not {self._sources(code)}"

    def unmet(self, message: JsonValue) -> str:
        """Return that all of them hold."""
        found = ", ".join(
            f"'{path}' is {found_at(path, message)}" for path in self.reads[:_SHOWN_REASONS]
        )
        return f"what 'not' excludes holds ({found})"
