"""The option `retry`: what is done about an outage, by whoever writes to somebody or asks somebody."""

from __future__ import annotations

from typing import Literal

from headrace.compiler.schema.fields import Number
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import TrueOr


class RetryOptions(Record):
    """Bridge outages: what failed as nobody answered, or as somebody has to act, is tried again."""

    seconds: float | None = option(
        Number(above=0),
        "Longest outage that is bridged, from its first failure on; what fails beyond that is lost, or a"
        " dead letter where the pipeline keeps those. Without it all are. Where somebody has to act, it"
        " waits for ever all the same.",
        default=None,
        elsewhere="max_elapsed_time timeout deadline max_seconds",
    )


Retrying = Literal[True] | RetryOptions | None
"""What a component has of it: true is the same as an object that says nothing."""

FOR_EVER = RetryOptions()

RETRY = TrueOr(RetryOptions)


def retry_of(retrying: Retrying) -> RetryOptions | None:
    """Return what is meant; None: nothing is tried again."""
    return FOR_EVER if retrying is True else retrying
