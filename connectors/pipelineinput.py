"""Reading what another pipeline hands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.conditions import Condition, when_taken
from headrace.compiler.component.families import FedBy, Input
from headrace.compiler.component.promises import InputPromises, Lost, MemoryBound, Waiting
from headrace.compiler.edges import INBOX_BATCHES, INBOX_TAKEN, Source
from headrace.compiler.schema.fields import Choice, PipelineId
from headrace.compiler.schema.records import option

INPUT = InputPromises(
    row="input",
    away="nothing (it attaches again when its upstream is back)",
    kill=Lost("what was in its inbox, which counts as delivered for the upstream", waiting=True),
    twice="nothing",
    waiting=Waiting(
        row="input",
        bounds=(MemoryBound(INBOX_BATCHES, "batches"),),
        beyond="the upstream waits",
        taken=INBOX_TAKEN,
    ),
)


ON_DELIVERY = replace(
    INPUT,
    row="on_delivery",
    when=", `upstream_ack: on_delivery`",
    kill=Lost("nothing of what the upstream reads again", under_way=False),
    twice="what had not left its outputs when the process ended or the upstream was exchanged",
    waiting=None if INPUT.waiting is None else replace(INPUT.waiting, row="on_delivery"),
)


class PipelineInput(Input, kind="pipeline", listed=5, elsewhere="inproc upstream"):
    """Read another pipeline's output.

    The upstream must already run. Up to 100 of its batches wait here; when they do, the upstream
    waits, and nothing is dropped. When the upstream is deleted, nothing arrives any more; when it
    is created again under its id, reading goes on.

    What is in the inbox has left the upstream, and is lost by a kill; with ``upstream_ack: on_delivery`` it
    has not before it has left the outputs here.

    Metadata that the upstream attached stays: a `merge` envelope of the same name adds what is new
    to it.
    """

    lacks: ClassVar = {
        "durable": "the input of the upstream keeps what comes, with 'upstream_ack: on_delivery' here until"
        " it has left this pipeline as well"
    }
    promises: ClassVar = (INPUT, ON_DELIVERY)
    fed_by: ClassVar[FedBy] = "pipeline"
    is_raw: ClassVar[bool] = False
    attaches: ClassVar = {"upstream": "Id of the pipeline the batch came from."}

    upstream: str = option(
        PipelineId(),
        "Id of the pipeline to read.",
        elsewhere="from id name pipeline pipeline_id source",
    )

    when: tuple[Condition, ...] = when_taken(
        "Conditions that all have to hold for a message that is read. The others never wait in the inbox, "
        "and hold up nobody."
    )

    upstream_ack: str | None = option(
        Choice(
            "on_receipt",
            "on_delivery",
            elsewhere={"on_receipt": "auto early receive", "on_delivery": "end_to_end late manual"},
        ),
        "When a message counts as delivered for the upstream: as it is in the inbox here, as where this is"
        " absent, or when all of it has left the outputs here. What the upstream has durable, or"
        " acknowledges on_delivery, then comes again after a kill.",
        default=None,
        additive=True,
        elsewhere="ack_upstream end_to_end propagate_ack",
    )

    @property
    def is_acknowledged_late(self) -> bool:
        """Whether the upstream waits until all of a message has left the outputs."""
        return self.upstream_ack == "on_delivery"

    def promised(self) -> InputPromises:
        """Return what the upstream's waiting or not comes to."""
        return ON_DELIVERY if self.is_acknowledged_late else INPUT

    @property
    def wanted(self) -> Sequence[Condition]:
        """Its `when`."""
        return self.when

    def source(self, ctx: Context) -> Source:
        """Attach to the upstream."""
        return ctx.attach(self.upstream, self.when, on_delivery=self.is_acknowledged_late)

    def is_batching(self) -> bool:
        """Return True: batches arrive as the upstream made them."""
        return True
