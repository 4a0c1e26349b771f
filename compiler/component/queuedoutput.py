"""Outputs that can have a queue on the disk: the option `queue`, once for all of them."""

from __future__ import annotations

from typing import Literal

from headrace.compiler.component.durable import MOST_KEPT_BYTES
from headrace.compiler.component.families import Output
from headrace.compiler.component.retry import FOR_EVER, RetryOptions
from headrace.compiler.schema.fields import Choice, Integer
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import TrueOr


class QueueOptions(Record):
    """Keep on the disk what an output has not written, so that nobody else waits for it."""

    max_bytes: int = option(
        Integer(min=1),
        "Bytes that may be kept.",
        default=MOST_KEPT_BYTES,
        elsewhere="max_size size limit max_queue_bytes",
    )
    when_full: str = option(
        Choice(
            "wait",
            "drop_oldest",
            elsewhere={"wait": "block backpressure", "drop_oldest": "overwrite ring drop"},
        ),
        "What becomes of what comes when so much is kept: it waits, and the inputs with it; or the oldest"
        " is dropped for it, and counted.",
        default="wait",
        elsewhere="on_full overflow overflow_action",
    )


Queueing = Literal[True] | QueueOptions | None
"""What an output has of it: true is the same as an object that says nothing."""

QUEUED = QueueOptions()

QUEUE = TrueOr(QueueOptions)


class QueuedOutput(Output):
    """An output of which what is not written can be kept on the disk."""

    queue: Queueing = option(
        QUEUE,
        "What is not written at once is on the disk until it is, and is written in order: the other"
        " outputs, and the inputs, go on meanwhile. true is the same as `{}`. With it batches are tried"
        " again as with `retry: {}`. It takes a server with `--data-dir`. See"
        " [durability](../../durability.md).",
        default=None,
        additive=True,
        elsewhere="buffer disk_buffer disk_queue persistent_queue spool",
    )

    @property
    def queueing(self) -> QueueOptions | None:
        """What is meant by its `queue`; None: nothing is kept."""
        return QUEUED if self.queue is True else self.queue

    @property
    def is_queued(self) -> bool:
        """Whether what is not written is kept."""
        return self.queue is not None

    def retrying(self) -> RetryOptions | None:
        """Return how outages are bridged: with a queue they are."""
        return super().retrying() or (FOR_EVER if self.is_queued else None)

    def kept_as(self) -> str:
        """Return what tells what is kept of it from what is kept of other outputs of its pipeline.

        Its kind, and what it writes to: where the config changes otherwise, what is kept is gone on with.
        """
        raise NotImplementedError
