"""Reading what fails in other pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, get_args

from headrace.compiler.component.buildcontext import Context, WantedFailures
from headrace.compiler.component.families import FedBy, Input, Stage
from headrace.compiler.component.promises import BYTES, InputPromises, Lost, MemoryBound, Waiting
from headrace.compiler.edges import Source
from headrace.compiler.schema.fields import Boolean, Choice, Integer, PipelineId
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault, repeated

QUEUED_BYTES = 16 * 2**20

INPUT = InputPromises(
    row="input",
    away="nothing (what failed was told and counted before)",
    kill=Lost("what was in its inbox: it is told of in the log as well", waiting=True),
    twice="nothing",
    waiting=Waiting(
        row="input",
        bounds=(MemoryBound("max_queued_bytes", BYTES),),
        beyond="failures are left out and counted, and the next one says how many; nobody waits",
    ),
)


class FailuresInput(
    Input,
    kind="failures",
    listed=6,
    elsewhere="alerts dead_letter dead_letters errors internal_logs internal_errors",
):
    """Read what fails in other pipelines, for alarms, tickets and statistics.

    One message for each message that a failure has cost, at most 1,000 of a batch; one alone where it cost
    none, as when an input loses its server. `message` is the message as it came to what failed; one that
    makes more than 20,000 values of its batch looked at does not come along. Of a payload that an input
    skips because it is not JSON or does not fit its `format`, or of what it leaves out of one, `payload` is
    the text, at most 64 KiB of it.

    It informs, and makes nobody wait: beyond `max_queued_bytes` failures are left out and counted, and
    `left_out` of the next one says how many. Without `upstream` it reads those of all pipelines, but of
    those that get something from it, or from another one that reads all.
    """

    promises: ClassVar = (INPUT,)
    fed_by: ClassVar[FedBy] = "failures"
    is_raw: ClassVar[bool] = False
    of_itself: ClassVar[str] = "would be told of its own failures"
    unsampled: ClassVar[str] = "nothing may fail for a long time"

    upstream: tuple[str, ...] = option(
        ListOf(PipelineId(), at_least=1, noun="pipeline id"),
        "Pipelines whose failures are read; all that get nothing from this one if left out.",
        default=(),
        elsewhere="from pipelines sources",
    )
    stages: tuple[str, ...] = option(
        ListOf(Choice(*get_args(Stage)), at_least=1, noun="stage"),
        "Where they fail; anywhere if left out.",
        default=(),
        elsewhere="stage where",
    )
    messages: bool = option(
        Boolean(), "Whether the message that failed, or the payload, comes along.", default=True
    )
    max_queued_bytes: int = option(
        Integer(min=1),
        "What may wait to be read, roughly; beyond it failures are left out.",
        default=QUEUED_BYTES,
        elsewhere="max_bytes buffer_size",
    )

    lacks: ClassVar = {"durable": "failures are told of, and none is kept"}

    def rules(self) -> Iterator[Fault]:
        """Refuse what is named twice."""
        for key in ("upstream", "stages"):
            named = ((name, (key, index)) for index, name in enumerate(getattr(self, key)))
            yield from repeated(
                named, said="'{name}' is named by {place} already", expected="each once"
            )

    def source(self, ctx: Context) -> Source:
        """Attach to what fails."""
        return ctx.hear(
            WantedFailures(self.upstream, self.stages, self.messages, self.max_queued_bytes)
        )

    def hears_all(self) -> bool:
        """Return whether no pipeline is named."""
        return not self.upstream

    def hands_on(self) -> Iterator[str]:
        """The fields of a failure; `message` has whatever the message had."""
        yield from (
            "pipeline_id",
            "stage",
            "component",
            "input_index",
            "kind",
            "error",
            "class",
            "reason",
            "at_fault",
            "at",
        )
        yield from ("message", "payload", "left_out") if self.messages else ("left_out",)

    def is_batching(self) -> bool:
        """Return True: failures that came together are read together."""
        return True
