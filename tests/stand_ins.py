"""Small real components that tests put at the ends of a pipeline: sources, sinks, steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Operator, Step
from headrace.compiler.component.families import Input, Output, Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival, AwaitingSink, InlineSink, Sink, Source
from headrace.compiler.formats import CsvOptions, FormatOptions, PayloadFormat
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.pipeline import Pipeline


class Told(Source):
    """Reads out what a script says: a chunk of arrivals, seconds to wait, or an error to raise.

    One life plays the script from where the last one stopped. Acknowledged origins are kept.
    """

    is_raw = False

    def __init__(self, clock: Clock, script: Sequence[Any], *, stays: bool = True) -> None:
        self._clock = clock
        self._script = list(script)
        self._stays = stays
        self.acknowledged: list[Any] = []
        self.lives = 0
        self.is_closed = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        self.lives += 1
        while self._script:
            line = self._script.pop(0)
            if isinstance(line, BaseException):
                raise line
            if isinstance(line, int | float):
                await self._clock.sleep(line)
            else:
                yield line
        if self._stays:
            await self._clock.sleep(1e9)

    def acknowledge(self, origins: Sequence[Any]) -> None:
        self.acknowledged += origins

    def close(self) -> Sequence[int]:
        self.is_closed = True
        return ()


class RawTold(Told):
    """The same with payloads that are still bytes."""

    is_raw = True


def batches(*each: Batch) -> list[Arrival]:
    """Return arrivals whose origin is their number."""
    return [(batch, number) for number, batch in enumerate(each)]


class Kept(InlineSink):
    """Keeps what it is given; says when it is finished; fails when it is told to."""

    def __init__(self, clock: Clock | None = None, *, fails: bool = False) -> None:
        self.batches: list[Batch] = []
        self.times: list[float] = []
        self.finished = 0
        self._clock = clock
        self.fails = fails

    def write(self, batch: Batch) -> None:
        if self.fails:
            raise OSError("the disk is full")
        self.batches.append(batch)
        if self._clock is not None:
            self.times.append(self._clock.monotonic())

    async def finish(self) -> None:
        self.finished += 1


class NeverUp(Kept):
    """A sink whose start never ends."""

    async def start(self) -> None:
        await asyncio.get_running_loop().create_future()


class Slow(AwaitingSink):
    """Takes so many seconds per batch; raises what `faults` say first."""

    def __init__(self, clock: Clock, seconds: float, faults: Sequence[Exception] = ()) -> None:
        self._clock = clock
        self.seconds = seconds
        self.faults = list(faults)
        self.batches: list[Batch] = []
        self.tried = 0
        self.finished = 0

    async def write(self, batch: Batch) -> None:
        self.tried += 1
        await self._clock.sleep(self.seconds)
        if self.faults:
            raise self.faults.pop(0)
        self.batches.append(batch)

    async def finish(self) -> None:
        self.finished += 1


class Given(Input, kind="given"):
    """An input that reads the source it is given."""

    def source(self, ctx: Context) -> Source:
        made: Source = self.made  # type: ignore[attr-defined]
        return made


class Formatted(Given, kind="formatted"):
    """The same in the format it is given."""

    acknowledges = True

    def payload_format(self) -> PayloadFormat:
        is_bare = self.envelope is not None and self.envelope.wraps
        csv = CsvOptions.load(self.csv)  # type: ignore[attr-defined]
        return PayloadFormat.known[self.word](FormatOptions("utf-8", csv, is_bare))  # type: ignore[attr-defined]


def formatted(source: Source, word: str, csv: dict[str, Any], **options: Any) -> Input:
    """Return an input that reads this in a format."""
    component = Formatted(**options)
    for name, value in (("made", source), ("word", word), ("csv", csv)):
        with_attribute(component, name, value)
    return component


class Acknowledging(Given, kind="acknowledging"):
    """The same with a broker behind it."""

    acknowledges = True


class Doing(Transform, kind="doing"):
    """A transform that is the step it is given."""

    def step(self, ctx: Context) -> Step:
        step: Step = self.does  # type: ignore[attr-defined]
        return step


class Awaiting(Transform, kind="awaiting"):
    """A transform that is the awaiting step it is given."""

    def operator(self, ctx: Context) -> Operator:
        return ctx.lift_awaiting(self.does)  # type: ignore[attr-defined]


class Taking(Output, kind="taking"):
    """An output that writes to the sink it is given."""

    def open(self, ctx: Context) -> Sink:
        made: Sink = self.made  # type: ignore[attr-defined]
        return made


def reads(source: Source, **options: Any) -> Input:
    """Return an input over ``source``."""
    kind = Acknowledging if options.pop("acknowledges", False) else Given
    return with_attribute(kind(**options), "made", source)


def does(step: Callable[[Batch], Any], kind: type[Transform] = Doing) -> Transform:
    """Return a transform over ``step``."""
    return with_attribute(kind(), "does", step)


def takes(sink: Sink, **options: Any) -> Output:
    """Return an output over ``sink``."""
    return with_attribute(Taking(**options), "made", sink)


def with_attribute(component: Any, name: str, value: Any) -> Any:
    """Return a frozen component that carries one more thing."""
    object.__setattr__(component, name, value)
    return component


def pipeline(
    id: str,
    inputs: Sequence[Input],
    transforms: Sequence[Transform] = (),
    outputs: Sequence[Output] = (),
) -> PipelineConfig:
    """Return a config of components that are there already."""
    return PipelineConfig(
        id=id, inputs=tuple(inputs), transforms=tuple(transforms), outputs=tuple(outputs)
    )


async def run(engine: Engine, config: PipelineConfig) -> None:
    """Compile a config and let everything that is ready happen."""
    await engine.compile(config)
    await engine.clock.sleep(0.001)


def engine() -> Engine:
    """Return an engine on the running loop."""
    return Engine(Clock(asyncio.get_running_loop()))


def running(it: Engine, id: str) -> Pipeline:
    """Return a running pipeline."""
    return it.graph.pipelines[id]
