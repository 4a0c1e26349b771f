"""The buffer an input may have: batches messages before the transforms see them.

Not the `buffer` transform. `size` is a floor: an arriving batch is never split, so it can be
overshot. No batch is ever empty, and the clock starts at the first message.
"""

from __future__ import annotations

from headrace.compiler.component.holders import Holder
from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged


class InputBuffer(Tagged):
    """Batches messages before the transforms see them."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Messages and seconds that end a batch; None: that one never does."""
        raise NotImplementedError

    def holder(self) -> Holder:
        """Return how many messages it holds, and how long."""
        return Holder(*self.limits)


class Static(InputBuffer, tag="static", elsewhere="count fixed size"):
    """Hands on the batch after this many messages."""

    size: int = option(
        Integer(min=0),
        "Messages that end a batch; 0 is read as 1.",
        elsewhere="count max_messages messages",
    )

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """By count alone."""
        return max(self.size, 1), None


class Tumbling(InputBuffer, tag="tumbling", elsewhere="interval time window"):
    """Hands on the batch this many seconds after its first message."""

    window_seconds: int = option(
        Integer(min=0),
        "Seconds from the first message; 0 closes at once.",
        elsewhere="interval period seconds window",
    )

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """By time alone."""
        return None, self.window_seconds


class Either(InputBuffer, tag="batch", elsewhere="both either"):
    """Hands on the batch at this many messages or after this many seconds, whichever is first."""

    size: int = option(
        Integer(min=0),
        "Messages that end a batch; 0 is read as 1.",
        elsewhere="count max_messages messages",
    )
    window_seconds: int = option(
        Integer(min=0),
        "Seconds from the first message; 0 closes at once.",
        elsewhere="interval period seconds window",
    )

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """By count or time."""
        return max(self.size, 1), self.window_seconds
