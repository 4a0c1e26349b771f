"""What holds messages on purpose, and what the input of a pipeline has to say of it.

With ``ack: on_delivery`` what is held is not acknowledged. A broker that lets a client have only so many
messages unacknowledged then sends no more, and what was to gather gets no more than those.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        if self.seconds is None:
            return f"{self.called} holds them until its gate opens"
        return f"{self.called} holds them for {self.seconds} s"
