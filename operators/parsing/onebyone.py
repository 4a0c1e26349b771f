"""A step on one message after the other, each of which may take milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Step
from headrace.compiler.component.failingmessages import Failing, Lose
from headrace.compiler.delivery import Batch, JsonValue, is_large
from headrace.compiler.largejson import LargeList


@dataclass(frozen=True)
class OneByOne:
    """A step that is lifted as one that pauses: after each message it looks whether its time is over."""

    step: Step
    clock: Clock
    lose: Lose | None = None
    """Is told of the messages that a batch goes on without; None: their batch fails."""

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
    failing: Failing = field(default_factory=Failing)

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on for so long; return what became of the batch, None when it is not over yet."""
        now = self.work.clock.monotonic
        ends = now() + seconds
        for message in self.rest:
            self._work_on(message)
            if now() >= ends:
                return None
        if self.work.lose is not None:
            self.failing.tell(self.work.lose)
        return [self.made]

    def close(self) -> None:
        """Keep nothing of it."""
        self.rest, self.made = iter(()), []
        self.failing.clear()

    def _work_on(self, message: JsonValue) -> None:
        try:
            for batch in self.work.step([message]):
                self.made += batch
        except Exception as cause:  # told of with all of the batch
            if self.work.lose is None:
                raise
            self.failing.add(message, cause)
