"""Messages that went no further: how many, where, and why. Nothing that is counted here comes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed, Stopped

LossReason = Literal["error", "batch", "stopped"]
"""The message could not be done, or read, and the others went on; its batch failed; or there was no time
left before the pipeline ended."""


_NONE: Mapping[int, str] = MappingProxyType({})


class LostMessages(NamedTuple):
    """Messages of one batch that are lost by one failure, as they came to where that happened."""

    messages: Sequence[JsonValue]
    reason: LossReason
    batch: object | None = None
    """The same of all failures of one batch; None: there is no other."""
    refused: Mapping[int, str] = _NONE
    """Those at fault, by index, each with what was said of it; empty: which of them is not known."""

    def at_fault(self, index: int) -> bool | None:
        """Return whether one of them is why it failed; None where that is not known."""
        if self.reason == "error":
            return True
        return index in self.refused if self.refused else None


LostData = LostMessages | bytes
"""What is lost by one failure: messages, or the payload that none could be made of."""


def reason_of(lost: LostData | None) -> LossReason | None:
    """Return why that is lost; None where it is nothing."""
    return "error" if isinstance(lost, bytes) else lost and lost.reason


def lost_with(
    cause: BaseException, batch: Sequence[JsonValue], redact: Callable[[str], str]
) -> LostMessages:
    """Return what is lost of a batch that failed: all of it that is not done."""
    reason: LossReason = "stopped" if isinstance(cause, Stopped) else "batch"
    if not isinstance(cause, BatchFailed) or not (cause.done or cause.refused):
        return LostMessages(batch, reason)
    done = frozenset(cause.done)
    left = [index for index in range(len(batch)) if index not in done]
    said = {text: redact(text) for text in set(cause.refused.values())}
    refused = {
        place: said[cause.refused[index]]
        for place, index in enumerate(left)
        if index in cause.refused
    }
    return LostMessages([batch[index] for index in left], reason, refused=refused)


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
