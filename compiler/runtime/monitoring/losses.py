"""Messages that went no further: how many, where, and why. Nothing that is counted here comes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed, Stopped

LossReason = Literal["error", "batch", "stopped", "dropped"]
"""The message could not be done, or read, and the others went on; its batch failed; or there was no time
left before the pipeline ended; or there was no room for it in the queue of its output, or in its input."""


_NONE: Mapping[int, str] = MappingProxyType({})


class LostMessages(NamedTuple):
    """Messages of one batch that are lost by one failure, as they came to where that happened."""

    messages: Sequence[JsonValue]
    reason: LossReason
    batch: object | None = None
    """The same of all failures of one batch; None: there is no other."""
    done: Collection[int] = ()
    """Those of the messages, by index, that are not lost, for they are written."""
    refused: Mapping[int, str] = _NONE
    """Those at fault, by index, each with what was said of it; empty: which of them is not known."""
    redact: Callable[[str], str] = str
    """Hides secrets in what was said."""

    @property
    def size(self) -> int:
        """How many are lost."""
        return len(self.messages) - len(self.done)

    def told(self) -> Iterator[LostMessage]:
        """Yield those that are lost, one by one: somebody may want the first of many."""
        done = frozenset(self.done)
        for index, message in enumerate(self.messages):
            if index in done:
                continue
            if self.reason == "error":
                yield LostMessage(message, True)
            elif index in self.refused:
                yield LostMessage(message, True, self.redact(self.refused[index]))
            else:
                yield LostMessage(message, False if self.refused else None)


class LostMessage(NamedTuple):
    """One of them."""

    message: JsonValue
    at_fault: bool | None
    """Whether it is why its batch failed; None: that is not known."""
    said: str | None = None
    """What was said of it alone."""


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
    if not isinstance(cause, BatchFailed):
        return LostMessages(batch, reason)
    return LostMessages(batch, reason, None, cause.done, cause.refused, redact)


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
