"""Pipelines that keep something on the disk, of which the test says what is kept as what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.config.program import Program
from headrace.compiler.edges import Sink
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.revert.reverting import Target
from headrace.compiler.schema.fields import Text
from headrace.compiler.schema.records import option
from headrace.connectors.http import HttpInput
from tests.stand_ins import pipeline, takes, with_attribute


class Addressed(QueuedOutput, kind="addressed"):
    """An output that may have a queue, writes to the sink it is given, and is kept as its address."""

    address: str = option(Text(), "Where to.", default="db")

    def kept_as(self) -> str:
        return self.address

    def open(self, ctx: Context) -> Sink:
        made: Sink = self.made  # type: ignore[attr-defined]
        return made


def addressed(sink: Sink, address: str = "db", queue: Any = True) -> QueuedOutput:
    """Return an output with a queue, unless that is none."""
    output: QueuedOutput = with_attribute(
        Addressed.load({"queue": queue, "address": address}), "made", sink
    )
    return output


def keeping(
    *outputs: Sink | QueuedOutput,
    id: str = "p",
    durable: Any = True,
    transforms: Sequence[Transform] = (),
) -> PipelineConfig:
    """Return a pipeline that is posted to, durable unless that is none."""
    made = [each if isinstance(each, QueuedOutput) else takes(each) for each in outputs]
    return pipeline(id, [HttpInput.load({"durable": durable})], transforms, made)


def file_of(*configs: PipelineConfig) -> Target:
    """Return what a file says that has these pipelines."""
    return Target(Program(configs, {}), {})


Part = tuple[str, str, int, bool]
"""Of what is kept: the pipeline, the target, how many entries, whether it is left over."""


async def parts(it: Engine) -> list[Part]:
    """Return all parts that are kept, those of which nothing is left aside."""
    figures = await it.stored()
    assert figures is not None
    return [
        (each.pipeline, each.target, each.entries, each.left_over)
        for each in figures.parts
        if each.entries
    ]
