"""A step on one message after the other, each of which may take milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Step
from headrace.compiler.delivery import Batch, JsonValue, is_large
from headrace.compiler.largejson import LargeList


@dataclass(frozen=True)
class OneByOne:
    """A step that is lifted as one that pauses: after each message it looks whether its time is over."""

    step: Step
    clock: Clock

    def start(self, batch: Batch, seconds: float) -> list[Batch] | PausedBatch:
        """Work on a batch for so long; return what became of it, or what goes on with it."""
        made: Batch = LargeList() if is_large(batch) else []
        paused = PausedBatch(self, iter(batch), made)
        done = paused.resume(seconds)
        return paused if done is None else done


@dataclass
class PausedBatch:
    """A batch of which a part is done."""

    work: OneByOne
    rest: Iterator[JsonValue]
    made: Batch

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on for so long; return what became of the batch, None when it is not over yet."""
        now = self.work.clock.monotonic
        ends = now() + seconds
        for message in self.rest:
            for batch in self.work.step([message]):
                self.made += batch
            if now() >= ends:
                return None
        return [self.made]

    def close(self) -> None:
        """Keep nothing of it."""
        self.rest, self.made = iter(()), []
