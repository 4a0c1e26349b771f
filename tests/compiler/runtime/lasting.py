"""Pipelines with a durable input that reads a broker of the test's own."""

from __future__ import annotations

from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.durableinput import DurableInput
from headrace.compiler.component.payloadinput import PayloadInput
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import Sink, Source
from tests.compiler.runtime.connected import Broker
from tests.stand_ins import pipeline, takes, with_attribute


class Lasting(DurableInput, PayloadInput, kind="lasting"):
    """A durable input that reads the source it is given."""

    acknowledges = True

    def kept_as(self) -> str:
        return self.kind

    def source(self, ctx: Context) -> Source:
        made: Source = self.made  # type: ignore[attr-defined]
        return made


class Forgetful(Lasting, kind="forgetful"):
    """The same of a server that sends nothing again."""

    acknowledges = False


class Described(Broker):
    """A broker whose messages tell where they came from."""

    def describe(self, origin: Any) -> dict[str, Any]:
        return {"topic": f"t{origin}"}


class Batched(Broker):
    """A broker whose payloads are batches."""

    is_raw = False


def lasting(
    *sources: Source, to: Sink, kind: type[Lasting] = Lasting, **options: Any
) -> PipelineConfig:
    """Return a pipeline that keeps what it reads of brokers."""
    inputs = [kind.load({"durable": True} | options) for _ in sources]
    made = [
        with_attribute(each, "made", source) for each, source in zip(inputs, sources, strict=True)
    ]
    return pipeline("p", made, [], [takes(to)])
