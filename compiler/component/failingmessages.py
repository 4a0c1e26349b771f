"""What a message costs that a transform cannot do: its batch, or itself.

A transform takes `on_error` over by naming `FailsByMessage` as its first base:

    class Map(FailsByMessage, PerMessage, kind="map"): ...

Its step stays what it is: it raises for a batch with a bad message in it. Under `skip` it is handed one
message at a time wherever it runs plainly, and in a generated loop only what raises there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Self

from headrace.compiler.component.branches import SKIPPED, Branch
from headrace.compiler.component.buildcontext import (
    Context,
    FailedMessages,
    Operator,
    PacedStep,
    Step,
)
from headrace.compiler.component.families import Fusible, Transform
from headrace.compiler.delivery import Batch, JsonValue, parts
from headrace.compiler.errors import worded
from headrace.compiler.largejson import LargeList
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option

Lose = Callable[[FailedMessages], None]
"""Is told of the messages that a batch goes on without: `Context.lose`."""

NEVER_FAILS = {"on_error": "it cannot fail on a message"}
"""What a transform lacks whose step never raises for what is in a message."""
FAILS_AS_A_WHOLE = {"on_error": "it is about whole batches, and has no smaller unit to leave out"}
"""What one lacks that has to do with a batch, or with nothing of it."""

MOST_TEXTS = 100
"""Different failures of one batch that are told apart: a script may throw whatever a message brings."""
OTHERS = "failures with other texts"
"""What is told of further ones."""


class Failing(dict[str, tuple[Exception, Batch]]):
    """The messages of one batch that have failed so far, those that failed alike together."""

    def add(self, message: JsonValue, cause: Exception) -> None:
        """Add a message, as it came, and what it raised."""
        said = worded(cause)
        if said not in self:
            if len(self) >= MOST_TEXTS:
                said = OTHERS
            self.setdefault(said, (cause, []))
        self[said][1].append(message)

    def tell(self, lose: Lose) -> None:
        """Tell of what has failed, if anything has, and keep nothing of it.

        What was raised has this in its traceback: a circle, which would keep the messages.
        """
        if self:
            lose(self)
            self.clear()


class FailsByMessage(Transform):
    """A transform whose failures cost a batch, or under ``on_error: skip`` a message."""

    on_error: str | None = option(
        Choice(
            "fail",
            "skip",
            elsewhere={
                "fail": "abort error raise reject stop",
                "skip": "continue drop drop_on_error ignore omit",
            },
        ),
        "What a message costs that cannot be done: `fail` its whole batch, as if left out; `skip` itself, "
        "which is counted as lost while the others go on.",
        default=None,
        additive=True,
        elsewhere="catch drop_on_error error_handling on_failure",
    )

    @property
    def skips_failing(self) -> bool:
        """Whether a batch goes on without the messages that fail."""
        return self.on_error == "skip"

    def failing_alone(self) -> Self:
        """Return it with ``on_error: skip``, unless its config says something else."""
        if self.on_error is not None:
            return self
        alone = copy(self)
        object.__setattr__(alone, "on_error", "skip")
        return alone

    def skipped(self) -> Iterator[Branch]:
        """Yield the branch of a message that is left out, if any is."""
        if self.skips_failing:
            yield Branch(SKIPPED, "no message was ever skipped by error")

    def paced(self, ctx: Context) -> PacedStep:
        """Return the step on a large batch: in slices, if messages may fail alone."""
        if self.skips_failing:
            size = 1 if isinstance(self, Fusible) else None  # of what fuses, it is the last resort
            return skipping_in_slices(self.paced_for_each_batch(ctx), ctx.lose, size)
        if (paced := super().paced(ctx)) is not None:
            return paced
        step = self.step(ctx)
        return lambda batch: iter(step(batch))

    def operator(self, ctx: Context) -> Operator:
        """Return the operator of a step that is handed each message alone, if it may fail alone."""
        if self.skips_failing:
            return ctx.lift(skipping(self.for_each_batch(ctx), ctx.lose), self.paced(ctx))
        return super().operator(ctx)


def skipping(begin: Callable[[], Step], lose: Lose) -> Step:
    """Return the step that goes on without the messages for which one raises.

    That one is what ``begin`` gives for each batch (`Transform.for_each_batch`).
    """

    def skipped(batch: Batch) -> list[Batch]:
        made: Batch = []
        step, failed = begin(), Failing()
        for message in batch:
            try:
                for some in step([message]):
                    made += some
            except Exception as cause:  # told of below, with all of the batch
                failed.add(message, cause)
        failed.tell(lose)
        return [made] if made else []

    return skipped


def skipping_in_slices(
    begin: Callable[[], PacedStep], lose: Lose, size: int | None = None
) -> PacedStep:
    """Return the same for a large batch, in parts of ``size`` (`delivery.parts`): one batch in the end.

    ``begin`` is what `Transform.paced_for_each_batch` gives.
    """

    def skipped(batch: Batch) -> Iterator[Batch | None]:
        made: Batch = LargeList()
        step, failed = begin(), Failing()
        try:
            for part in parts(batch, size):
                for message in part:
                    try:
                        for some in step([message]):
                            if some is None:
                                yield None
                            else:
                                made += some
                    except Exception as cause:  # told of below, with all of the batch
                        failed.add(message, cause)
                yield None
            failed.tell(lose)
        finally:
            failed.clear()  # also where it is ended in the middle
        if made:
            yield made

    return skipped
