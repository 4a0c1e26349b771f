"""What failed of a pipeline, and where: what is about to become a dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.errors import FailureClass
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.monitoring.losses import LossReason, LostMessages

if TYPE_CHECKING:
    from headrace.compiler.store.letterrows import Letter

WEIGHS = 128
"""Bytes of a payload that count as a message."""


class FailedPlace(NamedTuple):
    """Where in a pipeline something failed: the stage, and the index in its list."""

    stage: Stage
    at: int


def targets_of(config: PipelineConfig) -> dict[FailedPlace, str]:
    """Return what tells the components of a pipeline apart: the kind; of outputs, what they write to."""
    return {
        FailedPlace(stage, at): each.kept_as() if isinstance(each, QueuedOutput) else each.kind
        for name, stage in FAMILY_OF.items()
        for at, each in enumerate(getattr(config, name))
    }


@dataclass(slots=True)
class FailedPart:
    """What failed alike of one batch, or a payload: what is about to become a letter."""

    number: int
    place: FailedPlace
    message: str
    failure: FailureClass
    detail: str | None
    reason: LossReason
    """Why its messages are lost, should it become none."""
    at: int
    """When it failed. Units: microseconds since 1970."""
    messages: Batch
    payload: bytes | None = None
    """Of an input, what no message could be made of."""
    batch: object = None
    """Of an output, the batch that it is of."""
    about: dict[str, Any] | None = None
    """Of an input, where it came from."""

    @property
    def count(self) -> int:
        """How many messages it is."""
        return len(self.messages) if self.payload is None else 1

    @property
    def weight(self) -> int:
        """How much it counts of what may wait."""
        return self.count if self.payload is None else 1 + len(self.payload) // WEIGHS


class PutDown(NamedTuple):
    """A letter on its way to the disk."""

    part: FailedPart
    letter: Letter
    body: bytes


def alike(lost: LostMessages) -> Iterator[tuple[str | None, Batch]]:
    """Yield what is lost, those messages together of which the same was said."""
    if not lost.done and not lost.refused and isinstance(lost.messages, list):
        yield None, lost.messages
        return
    makes = LargeList if isinstance(lost.messages, list) and is_large(lost.messages) else list
    together: dict[str | None, Batch] = {}
    done = frozenset(lost.done)
    for index, message in enumerate(lost.messages):
        if index not in done:
            said = lost.refused.get(index)
            some = together.get(said)
            if some is None:
                some = together[said] = makes()
            some.append(message)
    yield from ((said and lost.redact(said), some) for said, some in together.items())
