"""What tests of reverts work with: components that are known by a word, and what files say of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.compiler.buckets import Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.families import Connection, Input, Output, Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Sink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.revert.plan import Plan
from headrace.compiler.runtime.revert.reverting import Target
from headrace.compiler.schema.fields import AnyJson, BucketName, ConnectionName, Text
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpInput
from tests.stand_ins import Awaiting, Kept, Slow, Told, does


class Wire(Connection, kind="wire"):
    """A connection that says one thing."""

    host: str = option(Text(), "Where to.")
    port: int = option(AnyJson(), "Which door.", default=1)


@dataclass
class Stage:
    """What is at the ends of the pipelines of a test: by the words in their configs."""

    it: Engine
    sources: dict[str, Callable[[], Source]] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    read: list[Told] = field(default_factory=list)
    """The sources that count, in the order they were built."""
    refused: set[str] = field(default_factory=set)
    """Words that no build takes."""

    def source(self, word: str) -> Source:
        """Return what an input reads: numbers, ten a second, unless something else is arranged."""
        if word in self.refused:
            raise BuildRefused(Fault("conflict", f"'{word}' is refused"))
        if word in self.sources:
            return self.sources[word]()
        clock = self.it.clock
        script = [line for n in range(1000) for line in (0.1, [([n], None)])]
        self.read.append(Told(clock, script))
        return self.read[-1]

    def kept(self, word: str) -> Kept:
        """Return what took whatever was written under a word."""
        kept = self.sinks.setdefault(word, Kept(self.it.clock))
        assert isinstance(kept, Kept)
        return kept

    def written(self, word: str) -> list[Any]:
        """Return the messages that were written under a word."""
        return [message for batch in self.kept(word).batches for message in batch]

    def pipeline(self, id: str) -> Pipeline:
        """Return what runs under an id."""
        return self.it.graph.pipelines[id]

    async def revert(
        self, *pipelines: PipelineConfig, connections: Any = None, **buckets: Any
    ) -> Plan:
        """Revert to what a file and its companion say."""
        return await self.it.revert(target(*pipelines, connections=connections, **buckets))

    async def plan(
        self, *pipelines: PipelineConfig, connections: Any = None, **buckets: Any
    ) -> Plan:
        """Return the plan of that."""
        return await self.it.plan(target(*pipelines, connections=connections, **buckets))


_STAGE: list[Stage] = []


def staged(**options: Any) -> Stage:
    """Return a new stage with an engine on the running loop; the components of this page use it."""
    _STAGE[:] = [Stage(Engine(Clock(asyncio.get_running_loop()), **options))]
    return _STAGE[0]


def target(*pipelines: PipelineConfig, connections: Any = None, **buckets: Any) -> Target:
    """Return what a file says: pipelines, buckets with ``max_keys`` or a declaration."""
    declared = {
        name: each if isinstance(each, BucketDeclaration) else BucketDeclaration(max_keys=each)
        for name, each in buckets.items()
    }
    return Target(Program(pipelines, declared), connections or {})


class From(Input, kind="from"):
    """Reads what the stage has under a word."""

    word: str = option(Text(), "Which.")
    connection: str | None = option(ConnectionName("wire"), "Through what.", default=None)
    claimed: str | None = option(Text(), "What it has for itself.", default=None)
    file: str | None = option(Text(), "What it reads at the build.", default=None)

    def source(self, ctx: Context) -> Source:
        if self.connection is not None:
            ctx.connection(Wire, self.connection)
        if self.claimed is not None:
            ctx.claim(self.claimed)
        if self.file is not None:
            ctx.reads(self.file)
        return _STAGE[0].source(self.word)


class Saying(Transform, kind="saying"):
    """Puts a word beside each message."""

    word: Any = option(AnyJson(), "Which.")
    seen: str | None = option(Text(), "Says nothing; has a default.", default="usual")

    def step(self, ctx: Context) -> Step:
        return lambda batch: [[[self.word, message] for message in batch]]


class Counting(Transform, kind="counting"):
    """Remembers how many messages it saw, and hands on the count."""

    bucket: str = option(BucketName(), "Where.")

    def step(self, ctx: Context) -> Step:
        bucket: Bucket = ctx.bucket(self.bucket)

        def step(batch: Any) -> list[Any]:
            known: Mapping[str, Any] = bucket.get("seen") or {"count": 0}
            bucket.merge({"seen": {"count": known["count"] + len(batch)}})
            return [[(bucket.get("seen") or {})["count"]]]

        return step


class Into(Output, kind="into"):
    """Writes to what the stage has under a word."""

    word: str = option(Text(), "Which.")

    def open(self, ctx: Context) -> Sink:
        return _STAGE[0].sinks.setdefault(self.word, Kept(_STAGE[0].it.clock))


def flow(
    id: str | None,
    *transforms: Transform,
    into: str | None = None,
    reads: Any = None,
    **options: Any,
) -> PipelineConfig:
    """Return a pipeline that numbers run through, into the sink of its own name."""
    inputs = (
        tuple(reads) if reads is not None else (From(word=options.pop("word", "n"), **options),)
    )
    return PipelineConfig(
        id=id, inputs=inputs, transforms=transforms, outputs=(Into(word=into or id or "nameless"),)
    )


def here(tmp_path: Path, name: str, text: str) -> Path:
    """Write a file and return it."""
    path = tmp_path / name
    path.write_text(text)
    return path


class Denying(Kept):
    """Another server that says no, once it is asked."""

    asked = 0

    async def start(self) -> None:
        self.asked += 1
        raise BuildRefused(Fault("turned-away", "wrong password"))


def slowly(stage: Stage) -> Transform:
    """Return a transform that takes half a second for each batch."""

    async def step(batch: Batch) -> list[Batch]:
        await stage.it.clock.sleep(0.5)
        return [batch]

    return does(step, Awaiting)


async def posts_are_taken_through(
    stage: Stage, change: Callable[[PipelineConfig], Awaitable[object]]
) -> None:
    """Post ten times a second while a pipeline changes: the old one takes each or the new one, once."""
    slow = stage.sinks["p"] = Slow(stage.it.clock, 0.5)
    await stage.revert(flow("p", Saying(word="a"), reads=[HttpInput()]))

    def post(n: int) -> bool:
        way_in = stage.it.way_in("p")
        return way_in is not None and way_in.ingress.offer([n], None)

    taken = [post(n) for n in range(4)]
    await stage.it.clock.sleep(0.1)
    changing = asyncio.ensure_future(change(flow("p", Saying(word="b"), reads=[HttpInput()])))
    for n in range(4, 24):
        await stage.it.clock.sleep(0.1)
        taken.append(post(n))
    await changing
    await stage.it.clock.sleep(60)

    assert taken == [True] * 24
    assert [message for batch in slow.batches for message in batch] == [
        ["a" if n < 4 else "b", n] for n in range(24)
    ]
    await stage.it.close()
