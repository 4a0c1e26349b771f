"""Links: whether an input or an output has what it reads from or writes to, and if not, why.

The pump of an input and the writer of an output see it begin, break and come back, whatever the connector
is. Connectors that connect again by themselves tell it with the failure (`Context.disconnected`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Millis

LinkStatus = Literal["coming", "up", "down", "waiting"]
PipelineHealth = Annotated[
    Literal["ok", "degraded"],
    Meta(
        description="`degraded` while an input or output is not `up`, or anything waits for the end of an"
        " outage."
    ),
]


class LinkState(msgspec.Struct, frozen=True):
    """Whether an input or an output is connected, or else why not and when it is tried again."""

    state: Annotated[
        LinkStatus,
        Meta(
            description="`coming`: never connected so far. `up`: connected, or in need of no connection."
            " `down`: lost, or over. `waiting`: it waits for others, or for the other side to take what it"
            " holds."
        ),
    ]
    why: Annotated[str | None, Meta(description="On one line; null where nothing is known.")] = None
    retry_at: Annotated[
        Millis | None,
        Meta(
            description="When it is tried again, in milliseconds since 1970. Null: now, or with what"
            " comes next, or never."
        ),
    ] = None


def health_of(links: Iterable[LinkState], *, waits: bool) -> PipelineHealth:
    """Return the health of a pipeline with these inputs and outputs; ``waits``: something of it does."""
    return "degraded" if waits or any(each.state != "up" for each in links) else "ok"


COMING, UP = LinkState("coming"), LinkState("up")


class Link:
    """The link of one component."""

    __slots__ = ("_retry_at", "_was_up", "status", "why")

    def __init__(self) -> None:
        self.status: LinkStatus = "coming"
        self.why: str | None = None
        """Why it is not up."""
        self._was_up = False
        self._retry_at: int | None = None

    def connected(self) -> None:
        """The other side is there, or none is needed."""
        self.status, self.why, self._retry_at, self._was_up = "up", None, None, True

    def lost(self, why: str | None, retry_at: int | None = None) -> None:
        """The other side is not there, or not any more; tried again at a time, in milliseconds."""
        self.status = "down" if self._was_up else "coming"
        self.why, self._retry_at = why, retry_at

    def waits(self, why: str) -> None:
        """It was let go of, until something else is there."""
        self.status, self.why, self._retry_at = "waiting", why, None

    def retries(self, at: int) -> None:
        """It is tried again at a time, in milliseconds, unless it is there."""
        if self.status != "up":
            self._retry_at = at

    def ended(self) -> None:
        """Nobody reads or writes any more."""
        self.lost(self.why)

    def state(self, now: int) -> LinkState:
        """Return how it is. Units: milliseconds since 1970."""
        if self.status == "up":
            return UP
        due = self._retry_at
        return LinkState(self.status, self.why, due if due is not None and due > now else None)
