"""A batch on its way to an output with a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.compiler.delivery import Batch, Delivery, Window


class QueuedItem:
    """A batch that an output has, or that waits for it; also the debt of whoever writes it."""

    __slots__ = (
        "_ended",
        "batch",
        "delivery",
        "is_in_hand",
        "is_read",
        "is_written",
        "number",
        "place",
        "since",
    )

    def __init__(
        self,
        batch: Batch,
        delivery: Delivery | None,
        place: int,
        ended: Callable[[QueuedItem], None],
    ) -> None:
        """Take who is told when it is written; ``place`` is a number that grows with each that comes."""
        self.batch, self.delivery, self.place, self._ended = batch, delivery, place, ended
        self.since = 0.0
        """When it came. Units: seconds of the clock."""
        self.number: int | None = None
        """Of its entry, from when that is being stored."""
        self.is_in_hand = self.is_written = False
        """Whether the output has it, or has had it; and whether it has written it or given it up."""
        self.is_read = False
        """Whether its entry was handed out by the journal, so that it can be let go of."""

    def settle(self) -> None:
        """Settle what it owes its inputs: it is written, or on the disk."""
        delivery, self.delivery = self.delivery, None
        if delivery is not None:
            delivery.done()

    def close(self) -> None:
        """Tell that the output has written it, or has given it up."""
        self._ended(self)

    def windows(self) -> Iterable[Window]:
        """Return nothing: inputs are bounded by what is not stored."""
        return ()
