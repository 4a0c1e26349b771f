"""What holds messages on purpose, and the buffer an input may have, which is one such.

With ``ack: on_delivery`` what is held is not acknowledged. A broker that lets a client have only so many
messages unacknowledged then sends no more, and what was to gather gets no more than those.

The buffer of an input batches messages before the transforms see them; it is not the `buffer` transform.
`size` is a floor: an arriving batch is never split, so it can be overshot. No batch is ever empty, and the
clock starts at the first message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged

SIZE, WINDOW = "size", "window_seconds"
"""The options that end a batch."""
BRIEF_SECONDS = 1
"""Who holds messages no longer than this costs a broker nothing worth telling."""


@dataclass(frozen=True, slots=True)
class Holder:
    """How many messages something holds at most and how long.

    ``most`` releases them, None if no number does; ``seconds`` counts from the first one, None if no
    time ends it; ``has_gate``: what is remembered may release them. ``called`` is where it stands, in
    words for a message.
    """

    most: int | None
    seconds: int | None
    has_gate: bool = False
    called: str = ""

    @property
    def is_brief(self) -> bool:
        """Whether it lets go so soon that nobody waits for it."""
        return self.most == 1 or (self.seconds is not None and self.seconds <= BRIEF_SECONDS)

    @property
    def is_by_size_alone(self) -> bool:
        """Whether nothing but more messages has it let go."""
        return self.seconds is None and not self.has_gate

    def __str__(self) -> str:
        """Say what it does: ``transforms[0] (buffer, line 9) holds them for 10 s``."""
        if self.is_by_size_alone:
            return f"{self.called} waits for {self.most}"
        until = "until its gate opens" if self.seconds is None else f"for {self.seconds} s"
        return f"{self.called} holds them {until}"


class InputBuffer(Tagged):
    """Batches messages before the transforms see them."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Messages and seconds that end a batch; None: that one never does."""
        raise NotImplementedError

    @property
    def triggers(self) -> Sequence[str]:
        """The options that can have it let go; where it closes at once, nothing else does."""
        size, seconds = self.limits
        by_time = () if seconds is None else (WINDOW,)
        return by_time if size is None or seconds == 0 else (SIZE, *by_time)

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


class Either(Static, Tumbling, tag="batch", elsewhere="both either"):
    """Hands on the batch at this many messages or after this many seconds, whichever is first."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """By count or time."""
        return max(self.size, 1), self.window_seconds
