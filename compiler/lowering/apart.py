"""A message that raises in a generated loop: it goes through the plain steps by itself, in its place.

What it does there shows nowhere before the whole batch is through. A step whose failures cost the batch
raises, and then all of the batch runs again through the plain steps, as without this; so it does where
somebody would warn for the first time. So what is told is what the plain steps tell: stage after stage, and
of each the messages in their order.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import TypeVar

from headrace.compiler.code import GiveUp
from headrace.compiler.component.buildcontext import Context, PacedStep
from headrace.compiler.component.failingmessages import Failing, Lose
from headrace.compiler.delivery import Batch, JsonValue, at_once

FailingByStage = dict[int, Failing]
"""What has failed of one batch, by the place of the step that it failed at."""

_C = TypeVar("_C", bound=Context)


class Apart:
    """The plain steps of a loop, and for each who is told of what it fails for; None: its batch fails."""

    def __init__(self, steps: Sequence[PacedStep], losing: Sequence[Lose | None]) -> None:
        self._stages = [*enumerate(zip(steps, losing, strict=True))]

    def alone(self, message: JsonValue, failed: FailingByStage) -> Batch:
        """Return what becomes of a message, or nothing; add it to what has failed, if it has.

        Raises:
            Exception: its batch fails, or is to be run again.
        """
        return at_once(self.alone_in_slices(message, failed))

    def alone_in_slices(
        self, message: JsonValue, failed: FailingByStage
    ) -> Generator[None, None, Batch]:
        """Do the same, and yield wherever others may have a turn."""
        batch = [message]
        for place, (step, lose) in self._stages:
            made: Batch = []  # a per-message step gives one batch or none
            if place:
                yield
            try:
                for some in step(batch):
                    if some is None:
                        yield
                    else:
                        made = some
            except Exception as cause:
                if lose is None or isinstance(cause, GiveUp):
                    failed.clear()  # what was raised has it in its traceback: a circle
                    raise
                failed.setdefault(place, Failing()).add(batch[0], cause)
                return []
            if not made:
                return []
            batch = made
        return batch

    def tell(self, failed: FailingByStage) -> None:
        """Tell of all that has failed of one batch, stage after stage; keep nothing of it."""
        for place, (_, lose) in self._stages:
            if lose is not None and place in failed:
                failed.pop(place).tell(lose)


def unheard(ctx: _C) -> _C:
    """Return the same context for a step in which nobody may warn for the first time."""

    def warn_once(text: str) -> None:
        if not ctx.has_warned(text):
            raise GiveUp

    quiet = copy(ctx)
    setattr(quiet, "warn_once", warn_once)  # noqa: B010 - a method, of this one alone
    return quiet
