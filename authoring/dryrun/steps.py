"""What a watched step is handed, and what it makes of that: batches whose messages are told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from headrace.compiler.component.buildcontext import Paused, PausingStep
from headrace.compiler.component.families import Origins
from headrace.compiler.delivery import Batch

SLICE_SECONDS = 0.0005
"""What a step that pauses may run in a row: it holds the interpreter, and the server waits for that."""

Indices = tuple[int, ...]
"""Which messages of those that were given, by their place among them."""


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
class StepSlices:
    """The parts of a batch in a step that pauses, and what was made of those that are through."""

    step: PausingStep
    parts: Sequence[Batch]
    acts: Callable[[], AbstractContextManager[None]]
    over: Callable[[Sequence[list[Batch]]], list[Batch]]
    made: list[list[Batch]] = field(default_factory=list)
    paused: Paused | None = None

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on until a part pauses, None then, or all are through: parts that are quick are not few."""
        seconds = min(seconds, SLICE_SECONDS)
        with self.acts():
            for part in self.parts[len(self.made) :]:
                paused = self.paused
                made = self.step(part, seconds) if paused is None else paused.resume(seconds)
                if not isinstance(made, list):
                    self.paused = made or paused
                    return None
                self.made.append(made)
                self.paused = None
        return self.over(self.made)

    def close(self) -> None:
        """Give up the part that is paused."""
        if self.paused is not None:
            self.paused.close()


def unused(batch: Batch, sources: Origins) -> Iterator[int]:
    """Yield the messages of a batch, by index, of which nothing was made."""
    used = {index for made in sources for indices in made for index in indices}
    return (index for index in range(len(batch)) if index not in used)


def joined(came: Sequence[Indices], sources: Origins) -> list[list[Indices]]:
    """Return what messages came from whose sources in a batch came from ``came``."""
    known: dict[int, Indices] = {}

    def of(indices: Sequence[int]) -> Indices:
        if (key := id(indices)) not in known:
            known[key] = tuple(sorted({origin for index in indices for origin in came[index]}))
        return known[key]

    return [[of(indices) for indices in batch] for batch in sources]
