"""The option `durable` of inputs: what arrives is on the disk before anybody is told that it has."""

from __future__ import annotations

from typing import Literal

from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import TrueOr
from headrace.compiler.text.diagnostics import Fault, Severity

MOST_KEPT_BYTES = 2**30
"""Bytes that may be on the disk where the config does not say."""


class DurableOptions(Record):
    """Keep on the disk what arrives, until all that became of it has left the outputs."""

    max_bytes: int = option(
        Integer(min=1),
        "Bytes that may be kept, beyond which nothing more is taken.",
        default=MOST_KEPT_BYTES,
        elsewhere="max_size size limit max_queue_bytes",
    )


Durable = Literal[True] | DurableOptions | None
"""What an input has of it: true is the same as an object that says nothing."""

DURABLY = DurableOptions()

DURABLE = TrueOr(DurableOptions)


def durable_of(durable: Durable) -> DurableOptions | None:
    """Return what is meant; None: nothing is kept."""
    return DURABLY if durable is True else durable


def nowhere(option: str = "durable", severity: Severity = Severity.ERROR) -> Fault:
    """Return that nothing can be kept, as there is no directory for it; ``option`` wants it."""
    return Fault(
        "no-data-dir",
        "nothing can be kept without --data-dir",
        expected=f"--data-dir DIRECTORY on the command line, or no '{option}'",
        path=(option,),
        severity=severity,
        on_key=True,
    )
