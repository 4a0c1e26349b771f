"""Parts that are left when their pipeline ends: put on the disk, and told of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from headrace.compiler.language.context import Context
from headrace.connectors.s3.kept import Kept, Shelf, reason
from headrace.connectors.s3.parts import Part

Keeping = asyncio.Future[Kept] | None
"""What is being put on the disk, if anything is."""


def in_memory(parts: Iterable[Part]) -> list[Part]:
    """Return the parts that are nowhere else."""
    return [part for part in parts if part.source is None]


def keeping(parts: Iterable[Part], shelf: Shelf | None, ctx: Context) -> Keeping:
    """Begin to put on the disk what is in memory; None if there is nothing, or no disk."""
    left = in_memory(parts)
    if shelf is None or not left:
        return None
    return asyncio.get_running_loop().run_in_executor(None, shelf.keep, left, ctx.clock.now())


def tell(parts: Sequence[Part], kept: Keeping, shelf: Shelf | None, ctx: Context) -> None:
    """Say what became of the parts that are not in the store.

    As warnings, of which the log shows every one; of failures it shows some.
    """
    lost, why = in_memory(parts), "with --data-dir they would be kept"
    if kept is not None and (cause := kept.exception()) is not None:
        why = f"they cannot be kept in --data-dir: {reason(cause)}"
    elif kept is not None:
        if lost:
            kept.result().close()
        else:
            kept.result().remove()
        lost = []
    if lost:
        ctx.warn(f"lost, because not uploaded in time: {amount(lost)}; {why}")
        ctx.fail("parts are lost: they could not be uploaded in time")
    if safe := [part for part in parts if part.source is not None or not lost]:
        assert shelf is not None
        ctx.warn(
            f"not uploaded: {amount(safe)}; kept in '{shelf.place}' of --data-dir for the next output"
            " with this bucket and prefix"
        )


def amount(parts: Sequence[Part]) -> str:
    """Return how much some parts are, in words."""
    messages = sum(part.messages for part in parts)
    size = sum(part.length for part in parts)
    return f"{_counted(len(parts), 'part')} with {_counted(messages, 'message')} ({size:,} bytes)"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
