"""What is told of parts that are not uploaded when their pipeline ends."""

from __future__ import annotations

from collections.abc import Collection

from headrace.compiler.component.buildcontext import Context
from headrace.connectors.s3.objectpart import ObjectPart
from headrace.connectors.s3.storefailures import FAILURES, NO_ANSWER

LOST = "parts are lost: they could not be uploaded in time"


def tell_of_the_rest(unsent: Collection[ObjectPart], why: str, ctx: Context) -> None:
    """Say what became of parts; ``why``: for what reason those that are nowhere are not on the disk.

    In warnings, of which the log shows every one; of failures it shows some.
    """
    nowhere = [part for part in unsent if part.source is None]
    lost = [part for part in nowhere if part.messages > part.owed_messages]
    if lost:
        ctx.warn(f"lost, because not uploaded in time: {amount(lost)}; {why}")
        count = sum(part.messages - part.owed_messages for part in lost)
        ctx.lose_count(LOST, count, FAILURES.of(NO_ANSWER))
    if owed := [part for part in nowhere if part.owed_messages]:
        count = sum(part.owed_messages for part in owed)
        ctx.warn(f"not uploaded in time: {amount(owed)}; of their messages come again: {count:,}")
    if kept := [part for part in unsent if part.source is not None and not part.source.is_old]:
        ctx.warn(
            f"not uploaded: {amount(kept)}; kept in the store of --data-dir for the next start of this"
            " output"
        )
    if old := [part for part in unsent if part.source is not None and part.source.is_old]:
        ctx.warn(f"not uploaded: {amount(old)} of an earlier version; they stay where they are")


def amount(parts: Collection[ObjectPart]) -> str:
    """Return how much some parts are, in words."""
    messages = sum(part.messages for part in parts)
    size = sum(part.length for part in parts)
    counted = [
        f"{number:,} {noun}{'' if number == 1 else 's'}"
        for number, noun in ((len(parts), "part"), (messages, "message"))
    ]
    return f"{' with '.join(counted)} ({size:,} bytes)"
