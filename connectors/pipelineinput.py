"""Reading what another pipeline hands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.conditions import Condition, when_taken
from headrace.compiler.component.families import FedBy, Input
from headrace.compiler.component.promises import InputPromises, Lost, MemoryBound, Waiting
from headrace.compiler.edges import INBOX_BATCHES, INBOX_TAKEN, Source
from headrace.compiler.schema.fields import PipelineId
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


class PipelineInput(Input, kind="pipeline", listed=5, elsewhere="inproc upstream"):
    """Read another pipeline's output.

    The upstream must already run. Up to 100 of its batches wait here; when they do, the upstream
    waits, and nothing is dropped. When the upstream is deleted, nothing arrives any more; when it
    is created again under its id, reading goes on.

    Metadata that the upstream attached stays: a `merge` envelope of the same name adds what is new
    to it.
    """

    promises: ClassVar = (INPUT,)
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

    @property
    def wanted(self) -> Sequence[Condition]:
        """Its `when`."""
        return self.when

    def source(self, ctx: Context) -> Source:
        """Attach to the upstream."""
        return ctx.attach(self.upstream, self.when)

    def is_batching(self) -> bool:
        """Return True: batches arrive as the upstream made them."""
        return True
