"""The option `dead_letters` of pipelines: what cannot be done is on the disk, with why."""

from __future__ import annotations

from typing import Literal

from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import TrueOr

MOST_LETTER_BYTES = 2**28
"""Bytes that the dead letters of a pipeline may take where the config does not say."""


class DeadLetterOptions(Record):
    """Keep on the disk what cannot be read, done or written, each with why."""

    max_bytes: int = option(
        Integer(min=1),
        "Bytes that they may take. When they do, an output waits that has more of them; for more of inputs"
        " and transforms the oldest are dropped, and counted.",
        default=MOST_LETTER_BYTES,
        elsewhere="max_size size limit max_queue_bytes",
    )
    most_in_a_row: int = option(
        Integer(min=1),
        "Messages that an output may refuse in a row without taking one: then it is not the messages, and"
        " somebody has to act.",
        default=100,
        elsewhere="max_consecutive circuit_breaker threshold",
    )


DeadLetterKeeping = Literal[True] | DeadLetterOptions | None
"""What a pipeline has of it: true is the same as an object that says nothing."""

LETTERS_KEPT = DeadLetterOptions()

DEAD_LETTERS = TrueOr(DeadLetterOptions)
