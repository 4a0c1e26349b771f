"""What is wrong with amounts: of posts that were refused or not answered, of messages that were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headrace.authoring.language.amounts import ExpectedLosses
from headrace.authoring.playing.scenario import ComponentAt
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.runtime.monitoring.losses import LossReason

AmountKind = Literal["refused", "unanswered", "lost"]

_WHAT: Mapping[AmountKind, str] = {
    "refused": "posts with 503",
    "unanswered": "posts without an answer",
    "lost": "messages",
}


@dataclass(frozen=True, slots=True)
class AmountDifference:
    """An amount that is not as expected."""

    kind: AmountKind
    of: str
    """A pipeline, or a component."""
    expected: int
    came: int
    reason: str | None = None
    """Why messages are lost, where that is told apart."""

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        told = {"kind": self.kind, "of": self.of, "expected": self.expected, "found": self.came}
        return told if self.reason is None else {**told, "reason": self.reason}

    def line(self) -> str:
        """Return the line that tells it."""
        why = "" if self.reason is None else f" ({self.reason})"
        amounts = f"{self.came:,} {_WHAT[self.kind]}, expected {self.expected:,}"
        return f"{self.kind}  {self.of}{why}: {amounts}"


def compare_posts(
    kind: AmountKind, expected: Mapping[str, int] | None, came: Counter[str]
) -> Iterator[AmountDifference]:
    """Yield the pipelines of which more posts were so than expected, or fewer: none, if nothing is said."""
    wanted = expected or {}
    for pipeline in {**wanted, **came}:
        if wanted.get(pipeline, 0) != came[pipeline]:
            yield AmountDifference(kind, pipeline, wanted.get(pipeline, 0), came[pipeline])


def compare_losses(
    expected: ExpectedLosses, came: Counter[tuple[ComponentAt, LossReason]]
) -> Iterator[AmountDifference]:
    """Yield the components that lost more messages than expected, or fewer; all others lose none."""
    by_reason: dict[str, Counter[str]] = {at: Counter() for at in expected}
    for ((pipeline, stage, index), reason), count in came.items():
        at = f"{pipeline}.{LIST_OF[stage]}[{index}]"
        by_reason.setdefault(at, Counter())[reason] += count
    for at, counts in by_reason.items():
        wanted = expected.get(at, {})
        if isinstance(wanted, int):
            if counts.total() != wanted:
                yield AmountDifference("lost", at, wanted, counts.total())
            continue
        for why in {**wanted, **counts}:
            if wanted.get(why, 0) != counts[why]:
                yield AmountDifference("lost", at, wanted.get(why, 0), counts[why], why)
