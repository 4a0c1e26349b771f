"""One batch in a step of a dry run: handed in whole, or in parts that show what becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from headrace.compiler.component.buildcontext import Paused, PausingStep
from headrace.compiler.delivery import Batch

SLICE_SECONDS = 0.0005
"""What a step that pauses may run in a row: it holds the interpreter, and the server waits for that."""

Indices = tuple[int, ...]
"""Which messages of the request, by their place in it."""


@dataclass(frozen=True, slots=True)
class TracedBatch:
    """A batch on its way, and what is known of it.

    ``origins`` has what each of its messages came from; it is empty where nothing is traced. One that
    ``is_flush`` was let go of although nothing came, or was made of such a one.
    """

    batch: Batch
    origins: Sequence[Indices] = ()
    is_flush: bool = False


@dataclass(slots=True)
class StepRun:
    """A batch in a step, and what was made of its parts so far."""

    batch: TracedBatch
    is_apart: bool
    """Whether it is handed in one message at a time."""
    made: list[list[Batch]] = field(default_factory=list)

    @property
    def next(self) -> Batch | None:
        """The part that is handed in next; None when the step is through."""
        done = len(self.made)
        if self.is_apart:
            return self.batch.batch[done : done + 1] or None
        return None if done else self.batch.batch

    def batches(self) -> list[Batch]:
        """Return what was made: of messages that were handed in one by one, one batch or none."""
        if not self.is_apart:
            return self.made[0]
        whole = [message for made in self.made for batch in made for message in batch]
        return [whole] if whole else []

    def sources(self) -> Sequence[Sequence[Sequence[int]]]:
        """Return, of what was made of messages one by one, the message that each came from."""
        each = [[index] for index, made in enumerate(self.made) for batch in made for _ in batch]
        return [each] if each else []


class PausingStepRun:
    """A turn in a step that pauses."""

    def __init__(
        self,
        turn: StepRun,
        step: PausingStep,
        acts: Callable[[StepRun], AbstractContextManager[None]],
        over: Callable[[StepRun], list[Batch]],
    ) -> None:
        self._turn, self._step, self._acts, self._over = turn, step, acts, over
        self._paused: Paused | None = None

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on until a part pauses, None then, or all are through: parts that are quick are not few."""
        seconds = min(seconds, SLICE_SECONDS)
        with self._acts(self._turn):
            while (part := self._turn.next) is not None:
                if self._paused is None:
                    made = self._step(part, seconds)
                    if not isinstance(made, list):
                        self._paused = made
                        return None
                elif (resumed := self._paused.resume(seconds)) is None:
                    return None
                else:
                    made, self._paused = resumed, None
                self._turn.made.append(made)
        return self._over(self._turn)

    def close(self) -> None:
        """Give up the part that is paused."""
        if self._paused is not None:
            self._paused.close()


def joined(
    came: Sequence[Indices], origins: Sequence[Sequence[Sequence[int]]]
) -> list[list[Indices]]:
    """Return what messages came from whose sources in a batch came from ``came``."""
    known: dict[int, Indices] = {}

    def of(indices: Sequence[int]) -> Indices:
        found = known.get(id(indices))
        if found is None:
            each = {origin for index in indices for origin in came[index]}
            found = known[id(indices)] = tuple(sorted(each))
        return found

    return [[of(indices) for indices in batch] for batch in origins]
