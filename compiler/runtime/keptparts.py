"""Which parts of the store a pipeline has, as its config says: journals of inputs, what outputs keep.

A part is known by its pipeline and by what is read or written to, and not by where that stands in the
config: so it is the same one when others come before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.compiler.component.durableinput import DurableInput
from headrace.compiler.component.families import Component
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.runtime.borrowed import QueueName


def kept_as(component: DurableInput | QueuedOutput, before: Iterable[Component]) -> str:
    """Return what it is kept as: with a number behind it, if others before it are kept as the same."""
    name = component.kept_as()
    kept = (each for each in before if isinstance(each, DurableInput | QueuedOutput))
    same = sum(each.kept_as() == name for each in kept)
    return f"#{same + 1} {name}" if same else name


def kept_parts(id: str, config: PipelineConfig) -> Iterator[QueueName]:
    """Yield the parts that a pipeline has which runs under the id."""
    for index, each in enumerate(config.inputs):
        if isinstance(each, DurableInput) and each.is_durable:
            yield id, kept_as(each, config.inputs[:index]), "journal"
    for index, output in enumerate(config.outputs):
        if isinstance(output, QueuedOutput) and (output.is_queued or output.leaves_parts):
            name = kept_as(output, config.outputs[:index])
            yield id, name, "queue"  # of one with parts, what an earlier version has left
            if output.leaves_parts:
                yield id, name, "parts"
