"""What a pipeline is made of once it is built, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from reactivex import Observable

from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.edges import QueueFill
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.monitoring.links import LinkState
from headrace.compiler.runtime.outputs import Writer
from headrace.compiler.runtime.registrations import Registrations


class InputReader(Protocol):
    """What reads one input: a pump, or where it is durable one pump behind another."""

    window: Window
    """How many batches of it may be on their way."""

    def observable(self) -> Observable[Delivery]:
        """Return the deliveries: cold until subscribed, and one subscriber only."""

    async def open(self) -> None:
        """Connect a source that does, ahead of reading it.

        Raises:
            BuildRefused: the broker says no.
        """

    async def finish(self) -> None:
        """Let go of the broker, when nobody reads any more and nothing is left to acknowledge."""

    async def forget(self) -> None:
        """Have the broker keep nothing for this input, unless another one goes on with it."""

    def link(self, now: int) -> LinkState:
        """Return how its link is. Units: milliseconds since 1970."""

    def queue(self) -> QueueFill | None:
        """Return how full what waits before the pipeline is, if that is bounded."""

    def turned_down(self, cause: BuildRefused) -> None:
        """The other side says no, and is not tried again."""

    def stop(self) -> None:
        """End politely: what was taken from the outside still goes through, then completion."""

    def discard(self) -> None:
        """End without ever having read."""


@dataclass(slots=True)
class BuiltComponents(Registrations):
    """The built components of one pipeline: cold, and owing nothing to anybody yet."""

    readers: list[InputReader] = field(default_factory=list)
    chain: Observable[Delivery] | None = None
    writers: list[Writer] = field(default_factory=list)
