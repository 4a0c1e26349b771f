"""A sink that finds out which messages another one refuses: they are told, the rest is written."""

from __future__ import annotations

from functools import partial

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, QueueFill, Rest
from headrace.compiler.errors import BatchFailed, class_of, worded
from headrace.compiler.runtime.batchplaces import BatchPlaces, WriteBatch
from headrace.compiler.runtime.cutoffbatches import CutOffBatches
from headrace.compiler.runtime.refusalbrake import RefusalBrake


class BisectingSink(AwaitingSink):
    """Hands batches to another sink; of one that is refused, all but the messages at fault are written.

    What is refused by index is left out, and the rest is written by itself. What is refused as a whole is
    written in halves, down to single messages, where the sink says that nothing of it was taken; else the
    failure goes out as it is. Any other failure goes out as well, with what is done and refused by then. A
    batch that came later may be written meanwhile, if the sink has several under way at once.

    Where as many messages in a row were refused as may be, over batches as well, nothing more is: of each
    batch one message is tried, and unless it passes the failure is one that somebody has to act on.
    """

    def __init__(self, sink: AwaitingSink, most_in_a_row: int) -> None:
        """Take a sink, and how many messages may be refused in a row, at least one."""
        self._sink, self._begin = sink, sink.begin
        self.at_once, self.is_confirming = sink.at_once, sink.is_confirming  # type: ignore[misc]
        self._brake = RefusalBrake(most_in_a_row)
        self._cut_off = CutOffBatches(sink.at_once)
        sink.tell_apart()

    async def start(self) -> None:
        """Start the sink."""
        await self._sink.start()

    def queue(self) -> QueueFill | None:
        """Return how full what the sink holds is."""
        return self._sink.queue()

    async def finish(self) -> None:
        """Finish the sink."""
        await self._sink.finish()

    async def write(self, batch: Batch) -> None:
        """Write a batch.

        Raises:
            BatchFailed: some messages are at fault, and everything else is written; or nobody knows which.
            Exception: it is no fault of theirs, or the brake is on.
        """
        if (rest := self.begin(batch)) is not None:
            await rest()

    def begin(self, batch: Batch) -> Rest | None:
        """Begin to write a batch. Raises what `write` does, if that is known at once."""
        brake, cut_off = self._brake, self._cut_off.by_first
        if brake.in_a_row >= brake.most or (cut_off and id(batch[0]) in cut_off):
            return self._bisection(batch).run
        try:
            rest = self._begin(batch)
        except Exception as cause:
            return self._failed(batch, cause)
        if rest is None:
            brake.in_a_row = 0
            return None
        return partial(self._end, batch, rest)

    async def _end(self, batch: Batch, rest: Rest) -> None:
        """Await what is left of a write; what is not at fault is written again."""
        try:
            await rest()
        except Exception as cause:
            again = self._failed(batch, cause)
        else:
            self._brake.in_a_row = 0
            return
        await again()

    def _failed(self, batch: Batch, cause: Exception) -> Rest:
        """Return what writes the rest of a batch that failed. Raises a failure of which there is none."""
        its_class = class_of(cause)
        if its_class == "unclear":
            self._cut_off.add(batch)
        if its_class != "invalid" and not (isinstance(cause, BatchFailed) and cause.refused):
            if isinstance(cause, BatchFailed) and cause.done:
                self._brake.in_a_row = 0
            raise cause
        return partial(self._bisection(batch).run, cause)

    def _bisection(self, batch: Batch) -> _Bisection:
        first = self._cut_off.first_in(batch)
        return _Bisection(batch, self._write, self._brake, 0 if first is None else len(first))

    async def _write(self, batch: Batch) -> None:
        """Write a part of a batch: one that was cut off before as it was then."""
        before = self._cut_off.taken_out(batch)
        batch = batch if before is None else before
        try:
            if (rest := self._begin(batch)) is not None:
                await rest()
        except Exception as cause:
            failure = class_of(cause)
            if failure == "unclear" or (before is not None and failure != "invalid"):
                self._cut_off.add(batch)
            raise


class _Bisection(BatchPlaces):
    """One batch on its way in parts.

    What is refused is set aside at first. It counts, under the brake, when something passes, or nothing has
    for as many as may be refused.
    """

    def __init__(
        self, batch: Batch, write: WriteBatch, brake: RefusalBrake, is_first: int = 0
    ) -> None:
        """Take a batch, and how many of its messages are to be written first, by themselves."""
        super().__init__(batch)
        self._write, self._brake = write, brake
        self._parts = [range(is_first, len(batch)), range(is_first)]
        """What is to be written, the next last. What is left of the batch is in one of them."""
        self._whole_failure: Exception | None = None
        """Why a part could not be written of which nobody says who is at fault."""

    async def run(self, cause: Exception | None = None) -> None:
        """Write it, the whole of which has failed already if there is a cause. Raises as the sink does."""
        if cause is not None:
            self._parts = []
            await self.note(cause, self.whole)
            self._failed(self.whole, cause, is_single=len(self.batch) == 1)
        while (part := self._next()) is not None:
            is_single = self.count_left(part) == 1
            try:
                await self.some(self._write, part)
            except Exception as failed:
                self._failed(part, failed, is_single=is_single)
            else:
                self._passed()
        if self._whole_failure is not None:
            raise self.of_all(self._whole_failure)
        self.end()

    def _next(self) -> range | None:
        """Return what to write next: while the brake is on a single message; None if nothing is left."""
        if self._brake.is_on:
            self._count_aside()
            return self.first_left()
        while self._parts:
            part = self._parts.pop()
            if self.count_left(part):
                return part
        if not self.aside:
            return None
        self._count_aside()
        return self._next()  # what the brake leaves of them

    def _failed(self, part: range, cause: Exception, *, is_single: bool) -> None:
        """Do what a failure asks for; what it says of single messages is noted. Raises what goes out."""
        if isinstance(cause, BatchFailed) and cause.done:
            self._passed()
        if class_of(cause) != "invalid":
            self._count_aside()
            raise self.of_all(cause)
        told = len(cause.refused) if isinstance(cause, BatchFailed) else 0
        if self._brake.room <= len(self.aside) - told:
            self._count_aside()
        if self._brake.is_on:
            if is_single:
                raise self.of_all(self._brake.failure(cause)) from cause
            self._parts.append(part)
        elif told or not self.count_left(part):
            self._parts.append(part)  # the others may do
        elif self.count_left(part) == 1:
            self.set_aside({self.left_in(part)[0]: worded(cause)})
        elif isinstance(cause, BatchFailed) and cause.took_nothing:
            self._parts += self.halves(part)
        else:
            self._whole_failure = self._whole_failure or cause
            self._brake.in_a_row += 1
            self.give_up(part)

    def _passed(self) -> None:
        """Note that something has passed: what was refused until then is at fault."""
        self.refuse()
        self._brake.in_a_row = 0

    def _count_aside(self) -> None:
        """Refuse what is set aside, as far as the brake lets; the others are to be written after all."""
        room, count = self._brake.room, len(self.aside)
        if others := self.refuse(room):
            self._parts.append(range(min(others), max(others) + 1))
        self._brake.in_a_row += min(count, room)
