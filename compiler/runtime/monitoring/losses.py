"""Messages that went no further: how many, where, and why. Nothing that is counted here comes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import Stopped

LossReason = Literal["error", "batch", "stopped"]
"""The message could not be done, or read, and the others went on; its batch failed; or there was no time
left before the pipeline ended."""


class LostMessages(NamedTuple):
    """Messages of one batch that are lost by one failure, as they came to where that happened."""

    messages: Sequence[JsonValue]
    reason: LossReason
    batch: object | None = None
    """The same of all failures of one batch; None: there is no other."""


LostData = LostMessages | bytes
"""What is lost by one failure: messages, or the payload that none could be made of."""


def reason_of(lost: LostData | None) -> LossReason | None:
    """Return why that is lost; None where it is nothing."""
    return "error" if isinstance(lost, bytes) else lost and lost.reason


def lost_with(cause: BaseException, batch: Sequence[JsonValue]) -> LostMessages:
    """Return what is lost of a batch of which nothing goes on."""
    return LostMessages(batch, "stopped" if isinstance(cause, Stopped) else "batch")


class ComponentLoss(msgspec.Struct, frozen=True):
    """How many messages one component has lost for one reason."""

    stage: Stage
    component: int
    reason: LossReason
    count: int


class Losses:
    """What one pipeline has lost."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Stage, int, LossReason]] = Counter()

    def expect(self, stage: Stage, component: int, reason: LossReason) -> None:
        """Tell of what was not lost yet, too: who watches a figure has to see it change."""
        self._counts[stage, component, reason] += 0

    def add(self, stage: Stage, component: int, reason: LossReason, count: int) -> None:
        """Count messages; of an input also what it could not make a message of."""
        self._counts[stage, component, reason] += count

    def __iter__(self) -> Iterator[ComponentLoss]:
        for (stage, component, reason), count in self._counts.items():
            yield ComponentLoss(stage, component, reason, count)
