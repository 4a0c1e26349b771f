"""Where a pipeline meets the outside: a source is a built input, a sink a built output.

A connector writes these two and nothing else. Reconnecting, decoding, skipping what cannot be read,
coalescing, envelopes and input buffers are the pump's; order, backoff and reporting are the output
worker's. Both live in `headrace.compiler.runtime`, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from headrace.compiler.delivery import Batch, SharedDebt

Arrival = tuple[Any, Any]
"""What arrived, and where from.

First the payload: ``bytes`` for a source that `is_raw` (one message), a batch otherwise. Then its
origin: whatever the source needs to `describe` or `acknowledge` it; None when it needs nothing."""

INBOX_BATCHES = 100
"""Batches that a reader of another pipeline has accepted and not read yet, at most."""
READY_BYTES = 4 * 2**20
"""Of what is stored, what waits in memory for a reader that keeps up."""
INBOX_TAKEN = 16
"""Those that it takes out at once, which are not in its pipeline yet."""

QueueUnit = Literal["batches", "messages", "bytes"]


class QueueFill(NamedTuple):
    """How full a bounded queue is. Units: those of ``unit``."""

    unit: QueueUnit
    used: int
    capacity: int


Rest = Callable[[], Awaitable[None]]
"""What is left of a write that has begun: called once, and awaited."""


class Source(ABC):
    """What a built input is. One pump reads it."""

    is_raw: ClassVar[bool] = True
    """True: payloads are bytes, the pump decodes them and coalesces up to `max_batch`.
    False: payloads are batches and pass as they are."""

    connects: ClassVar[bool] = False
    """True: there is a broker behind it. `read` then yields an empty sequence as soon as it is connected,
    so that whatever is sent from then on arrives: that much is done while the pipeline is built. And
    `stop` has it yield once more; it is closed when all that it handed out has left the outputs, so
    that the broker can be told until then."""

    merges_metadata: ClassVar[bool] = False
    """True: messages may already carry metadata of their own pipeline; a `merge` envelope under the same
    field adds to it, and what is there wins."""

    takes_back: ClassVar[bool] = False
    """Whether arrivals are wanted back that were handed out, go no further, and are not acknowledged."""

    max_batch: int = 1
    """Most messages of a coalesced batch (raw sources)."""

    @abstractmethod
    def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Connect, then yield whatever has arrived, as often as something has.

        One call is one life of the connection: raising means the connection is lost and the pump
        calls again after its backoff; raising `Ended` or returning means the input is gone for good.
        Whatever it opens it closes in a ``finally``, within a second or two, however it ends.

        Raises:
            BuildRefused: the other side answers and says no (a credential, a certificate): refuses the
                pipeline while it is built; later it is a lost connection like any other.
        """

    def queue(self) -> QueueFill | None:
        """Return how full what has arrived and is not read yet is, if that is bounded."""
        return None

    def waits_for(self) -> str | None:
        """Return why nothing can arrive although it is connected; None: something can."""
        return None

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return the metadata of this kind for one arrival. Asked only when there is an envelope."""
        return {}

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Tell the broker that these arrivals need not come again."""

    def take_back(self, origins: Sequence[Any]) -> None:
        """Have arrivals back, in order, of a source that ``takes_back``."""

    def comes_again(self) -> bool:
        """Return whether all that was handed out and is not acknowledged comes again: it is not lost."""
        return False

    def stop(self) -> bool:
        """Ask to end after handing out what was already accepted.

        True: `read` will return by itself. False: nothing is owed and the pump ends it at once.
        """
        return False

    def close(self) -> Sequence[int]:
        """Let go of what is held, when nobody reads any more, however that came.

        Returns how many messages had each of the batches that it had accepted and that are lost with it.
        """
        return ()

    async def forget(self) -> None:
        """Have the broker keep nothing for it: its pipeline is deleted, and `read` is closed."""


class Sink(ABC):
    """What a built output is. Started once before the inputs, finished once however the run ended."""

    async def start(self) -> None:
        """Reach the other side and prepare it.

        Raises:
            BuildRefused: it answers and says no (a wrong credential, a failed DDL): not tried again.
            Exception: anything else counts as not reached and is tried again on the backoff.
        """

    def queue(self) -> QueueFill | None:
        """Return how full what it has taken and not written yet is, if that is bounded."""
        return None

    async def finish(self) -> None:
        """Write out what is held and close. Called after the last `write` has returned."""


class InlineSink(Sink):
    """A sink that only appends to a buffer: it is called in the pass itself and never waits."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Take one batch; raise `BatchFailed` (or anything) when it is lost."""


class AwaitingSink(Sink):
    """A sink that waits for the other side: it is called by ordered workers of its own."""

    is_confirming: ClassVar[bool] = True
    """False: a batch that it has taken may not be there yet. It tells by itself whether the other side is
    (`Context.disconnected`, `Context.reconnected`)."""

    at_once: int = 1
    """How many writes may be under way. With more than one, `begin` is what keeps their order: it is
    called in the order of the batches, and what it returns is awaited in any."""

    def tell_apart(self) -> None:
        """Find out from now on which messages of a batch are at fault, if that takes more tries.

        Asked before the start. Override where a batch may fail for the messages of another one.
        """

    @abstractmethod
    async def write(self, batch: Batch) -> None:
        """Write one batch.

        Raises:
            Unreachable: the other side does not answer; opens the backoff.
            Exception: anything else fails this batch only.
        """

    def begin(self, batch: Batch) -> Rest | None:
        """Begin to write, in the pass itself; return what finishes it, or None when it is written.

        Override where most batches wait for nobody. Raises what `write` does.
        """
        return partial(self.write, batch)


class GatheringSink(AwaitingSink):
    """A sink that gathers what it takes, and hands it over later; it waits for the other side by itself.

    A batch has left the chain when it is taken. Whoever is told of batches that are written hears of it
    later: what is owed for it is settled when it is handed over, or is where it outlasts the process.
    `at_once` is 1, and what fails of a write is no outage.
    """

    def put_down(self) -> Iterable[Batch]:
        """Return the batches that it has reported as lost and has still: they are becoming dead letters.

        Where one becomes none, what it was in comes again, or is told of by the sink itself.
        """
        return ()

    @abstractmethod
    def owe(self, custody: SharedDebt | None) -> None:
        """Take what is owed for all that is written from now on; None: nothing.

        Who keeps some of it adds one to its ``parts`` for each place, and closes it once for each, or never
        where it is lost and comes again.
        """
