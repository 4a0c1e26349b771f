"""Inputs that can be durable: the option `durable`, once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.compiler.component.durable import DURABLE, Durable, durable_of
from headrace.compiler.component.families import Input
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.promises import (
    BYTES,
    NOTHING_LOST,
    InputPromises,
    Lost,
    MemoryBound,
)
from headrace.compiler.edges import READY_BYTES
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Codes, Fault, Severity

CODES: Codes = {
    "keeps-too-little": "A durable input may keep less than what a buffer behind it waits for.",
}

LEAST_MESSAGE_BYTES = 2
"""What a message takes on the disk at least: one of many in an array, a digit and a comma."""

TWICE_AFTER_A_KILL = (
    "what had not left all outputs when the process ended, and what was stored together with it"
)
NOT_STORED = Lost("what had come and was not stored yet", waiting=True, under_way=False)
STORED = MemoryBound(READY_BYTES, BYTES, "of what is stored and comes next")


class DurableInput(Input):
    """An input of which what arrives can be kept on the disk until it has left the outputs."""

    durable: Durable = option(
        DURABLE,
        "What arrives is on the disk before anybody is told that it was taken (`http`: before the 202,"
        " `mqtt`: before it is acknowledged), and stays there until all that became of it has left the"
        " outputs: a restart reads it again, also after a kill. When so much is kept, nothing more is"
        " taken. true is the same as `{}`. It takes a server with `--data-dir`. See"
        " [durability](../../durability.md).",
        default=None,
        additive=True,
        elsewhere="persistent persistence disk_buffer wal journal",
    )

    @property
    def is_durable(self) -> bool:
        """Whether what arrives is kept."""
        return self.durable is not None

    def kept_as(self) -> str:
        """Return what tells what is kept of it from what is kept of other inputs of its pipeline.

        Its kind, and what it reads: where the config changes otherwise, what is kept is gone on with.
        """
        raise NotImplementedError

    def promised(self) -> InputPromises:
        """Return what being kept or not comes to: an input promises one thing without, another with it."""
        plain, kept = self.promises
        return kept if self.is_durable else plain

    def rules(self) -> Iterator[Fault]:
        """Refuse to acknowledge later than when it is on the disk: that would keep everything twice."""
        yield from super().rules()
        if self.is_durable and self.acknowledges and self.ack == "on_delivery":
            yield Fault(
                "conflict",
                "with 'durable' a message is acknowledged when it is on the disk, and not on_delivery",
                found='"on_delivery"',
                expected="'durable' or 'ack', not both",
                path=("ack",),
            )

    def starved_by(self, holder: Holder) -> Fault | None:
        """Tell of what waits for more messages than may be kept."""
        kept = durable_of(self.durable)
        if kept is None or holder.most is None or not holder.is_by_size_alone:
            return None
        if holder.most * LEAST_MESSAGE_BYTES <= kept.max_bytes:
            return None
        return Fault(
            "keeps-too-little",
            f"at most {kept.max_bytes:,} bytes are kept, and {holder}, which take more: it hands on what"
            " it has when no more may be kept",
            found=f"{kept.max_bytes}",
            suggestion="keep more, or wait for fewer messages",
            path=("durable", "max_bytes"),
            severity=Severity.WARNING,
        )


def durably(
    plain: InputPromises, *, when: str = ", `durable`", told: bool = False
) -> InputPromises:
    """Return what an input promises when it is durable, from what it promises otherwise.

    ``told``: there is somebody who is told that it was taken, and sends it again if not.
    """
    waiting = plain.waiting
    if waiting is not None:
        waiting = replace(waiting, row="durable", when=when, stored=STORED)
    return replace(
        plain,
        row="durable",
        when=when,
        kill=NOTHING_LOST if told else NOT_STORED,
        twice=TWICE_AFTER_A_KILL
        if plain.twice == "nothing"
        else f"{plain.twice}; {TWICE_AFTER_A_KILL}",
        waiting=waiting,
    )
