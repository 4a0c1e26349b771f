"""The engine: owns the running graph. Everybody else asks it and touches no pipeline's insides.

`compile` builds and starts one pipeline, `load` a whole file, `dispose` ends one, `revert` makes the graph
that of a file, `observe` gives the events. Another engine can stand behind the same interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace as with_changes
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig, generated_id
from headrace.compiler.component.states import BucketDeclaration, bounds_of
from headrace.compiler.config.program import Program
from headrace.compiler.config.retention import DEFAULT_RETENTION
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import (
    ChangedMeanwhile,
    PipelineDeleted,
    PipelineExists,
    Refused,
    UnknownPipeline,
)
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import TURN_SECONDS
from headrace.compiler.lint.rings import rings
from headrace.compiler.runtime.capturing.captures import Capture, CaptureRequest
from headrace.compiler.runtime.componentcontext import World
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.connectiontest import ConnectionTests, Tried
from headrace.compiler.runtime.dependencies import prepare
from headrace.compiler.runtime.environment import REAL, Environment
from headrace.compiler.runtime.graph import (
    ChangeLock,
    Graph,
    naming,
    upstream_first,
)
from headrace.compiler.runtime.inbox import Peek
from headrace.compiler.runtime.monitoring.bucketfigures import (
    BucketContents,
    BucketFigures,
    BucketPage,
    bucket_figures,
    page_of,
)
from headrace.compiler.runtime.monitoring.feed import Feed, Listener
from headrace.compiler.runtime.monitoring.figures import PipelineFigures, figures_of
from headrace.compiler.runtime.monitoring.liveevents import ALL, Change, Event, Interest
from headrace.compiler.runtime.monitoring.pipelinehistory import (
    History,
    LatestFailures,
    Past,
    RecentCounts,
)
from headrace.compiler.runtime.monitoring.pipelinelive import pulse_of
from headrace.compiler.runtime.monitoring.pipelinerecord import Resolution
from headrace.compiler.runtime.monitoring.pulses import Pulses
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.revert.plan import Plan
from headrace.compiler.runtime.revert.reverting import (
    NotReverted,
    RevertedInPart,
    Reverting,
    ShuttingDown,
    Target,
)
from headrace.compiler.runtime.sampling import Sample, Samples, Unbuilt, Unread
from headrace.compiler.runtime.wayin import WayIn
from headrace.compiler.schema.secrets import Secrets

_T = TypeVar("_T")

OPENING_SECONDS = 5.0
"""How long outputs may take to come up before a create is answered as `starting`."""
ENDING_SECONDS = 3.5
"""How long a pipeline may take to let go of what it holds; its outputs and brokers get a second more."""


SLICE = 20
"""Pipelines whose figures are told before messages have a turn: the text of each is encoded once."""


class Engine:
    """The running graph of pipelines."""

    def __init__(
        self,
        clock: Clock,
        *,
        connections: Mapping[str, Connection] | None = None,
        secrets: Secrets | None = None,
        data_dir: DataDir | None = None,
        base: Path | None = None,
        retention_seconds: int = DEFAULT_RETENTION,
        environment: Environment = REAL,
    ) -> None:
        self.clock = clock
        self.graph = Graph()
        self._changes = ChangeLock()
        self._reverting: Reverting | None = None
        self._is_closed = False
        self._pipelines = self.graph.pipelines
        self.secrets = secrets or Secrets()
        self.state = Buckets(clock, environment.crowded)
        """The declared buckets."""
        self.declarations: Mapping[str, BucketDeclaration] = {}
        self.connections = Connections(
            connections or {}, lambda name: naming(name, self.graph.configs())
        )
        self.history = History(clock, retention_seconds)
        self._feed = Feed(clock)
        self._pulses = Pulses(self._feed, self._pipelines, pulse_of)
        self._world = World(
            clock=clock,
            connections=self.connections,
            secrets=self.secrets,
            data_dir=data_dir,
            base=base,
            buckets=self.state,
            attach=self.graph.attach,
            environment=environment,
        )
        self._tests = ConnectionTests(self._world)
        self.samples = Samples(self._world, partial(self.graph.attach, make=Peek))

    @property
    def data_dir(self) -> Path | None:
        """The root of all files that are written; None if there are none."""
        opened = self._world.data_dir
        return None if opened is None else opened.path

    @property
    def base(self) -> Path | None:
        """The directory that files of a config are named from; None without a config file."""
        return self._world.base

    def move(self, base: Path) -> None:
        """Have files named from another directory, by what is built from now on."""
        self._world.base = base

    async def compile(self, config: PipelineConfig) -> PipelineFigures:
        """Build one pipeline, bring its outputs up and run it.

        Raises:
            PipelineExists: its id runs already.
            PipelineDeleted: somebody disposed of it meanwhile.
            Refused: with every reason; nothing was started.
        """
        await self._changes.passed()
        pipeline = self._reserved(config)
        id = pipeline.id
        try:
            refused = [*rings(id, self.graph.configs())]
            if not refused:
                self.graph.settle_decoding()
                await self._prepare([config])
                refused = pipeline.build() or await pipeline.open(OPENING_SECONDS, is_awaited=True)
            if self._pipelines.get(id) is not pipeline:
                raise PipelineDeleted(id)
            if refused:
                raise Refused(self._world.shown(refused), f"pipeline '{id}' could not be started")
        except BaseException:
            await self._withdraw([pipeline])
            raise
        pipeline.run()
        return figures_of(pipeline)

    async def load(self, program: Program) -> None:
        """Compile all pipelines of a file, or none, and have its buckets and no others.

        Raises:
            Refused: with every reason of every pipeline; nothing was started.
        """
        await self._prepare(program.pipelines)
        undeclare = self.state.declare(bounds_of(program.buckets))
        declared, self.declarations = self.declarations, program.buckets
        made: list[Pipeline] = []
        try:
            for config in program.pipelines:
                made.append(self._reserved(config))
            self.graph.settle_decoding()
            refused = [diagnostic for each in made for diagnostic in each.build()]
            if not refused:
                opened = await asyncio.gather(*(each.open(OPENING_SECONDS) for each in made))
                refused = [diagnostic for some in opened for diagnostic in some]
            if refused:
                raise Refused(self._world.shown(refused))
        except BaseException:
            await self._withdraw(made)
            undeclare()
            self.declarations = declared
            raise
        for each in made:
            each.run()

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline: its id is free at once, and this returns when its outputs are finished.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        await self._changes.passed()
        ended = self._pipelines.pop(pipeline, None)
        if ended is None:
            raise UnknownPipeline(pipeline)
        with self._changes.leaving():
            await ended.stop(ENDING_SECONDS, is_deleted=True)
        self.graph.forget(pipeline)
        self.graph.settle_decoding()

    async def plan(self, target: Target) -> Plan:
        """Return what a revert to ``target`` would do. Whether all of it can be built shows then."""
        return await self._revert_to(target).plan()

    async def revert(self, target: Target) -> Plan:
        """Have the graph, the connections and the buckets be those of ``target``; return what changed.

        What is as it should be goes on. Whoever asks may leave: what has begun is finished.

        Raises:
            NotReverted: a pipeline cannot be built; nothing was changed.
            RevertedInPart: pipelines were turned down as they were opened; all the others run.
            ShuttingDown: the server is shutting down; nothing was changed.
        """
        return await _to_its_end(self._revert(target))

    async def _revert(self, target: Target) -> Plan:
        async with self._changes.closed():
            return await self._become(target)

    async def exchange(
        self, pipeline: str, config: PipelineConfig, seen: Sequence[str] | None
    ) -> PipelineFigures:
        """Have a pipeline run with another config, as a revert does; nothing happens if it says the same.

        ``seen`` are the versions that whoever asks may have seen (`PipelineFigures.version`), None: any.

        Raises:
            UnknownPipeline: nobody runs under the id.
            ChangedMeanwhile: it has none of these versions any more.
            Refused: with every reason; what ran goes on.
            RevertedInPart: it was turned down as it was opened, and is `failed`.
            ShuttingDown: the server is shutting down; nothing was changed.
        """
        return await _to_its_end(self._exchange(pipeline, config, seen))

    async def _exchange(
        self, id: str, config: PipelineConfig, seen: Sequence[str] | None
    ) -> PipelineFigures:
        async with self._changes.closed():
            target = self._in_place(id, config)
            if seen is not None and figures_of(self._pipelines[id]).version not in seen:
                raise ChangedMeanwhile(f"pipeline '{id}'")
            refused = f"pipeline '{id}' was not exchanged"
            # Others may have come and gone since the config was read.
            if said := self.graph.objections(id, config):
                raise Refused(self._world.shown(said), refused)
            try:
                await self._become(target)
            except NotReverted as cause:
                raise Refused(cause.diagnostics, refused) from cause
            except RevertedInPart as cause:
                told = f"pipeline '{id}' was exchanged, and has failed"
                raise RevertedInPart(cause.diagnostics, told) from cause
            return figures_of(self._pipelines[id])

    async def plan_exchange(self, pipeline: str, config: PipelineConfig) -> Plan:
        """Return what `exchange` would do.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        return await self.plan(self._in_place(pipeline, config))

    def _in_place(self, id: str, config: PipelineConfig) -> Target:
        """Return what runs, but for one config; without an id that has the one of the config before.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        if id not in self._pipelines:
            raise UnknownPipeline(id)
        named = config.id or self._pipelines[id].config.id
        config = with_changes(config, id=named).standing(config.site)
        return Target(Program((config,), self.declarations), dict(self.connections), only=id)

    async def _become(self, target: Target) -> Plan:
        """Have what runs be something else. Nobody else may change it meanwhile."""
        if self._is_closed:
            raise ShuttingDown
        reverting = self._reverting = self._revert_to(target)

        def install() -> None:
            self.connections.replace(target.connections)
            self.state.become(reverting.buckets)
            self.declarations = target.program.buckets

        try:
            return await reverting.run(install)
        finally:
            self._reverting = None

    def _revert_to(self, target: Target) -> Reverting:
        return Reverting(
            target,
            self.graph,
            self._world,
            self._make,
            opening_seconds=OPENING_SECONDS,
            ending_seconds=ENDING_SECONDS,
        )

    def names(self) -> Collection[str]:
        """Return the ids that are taken, in the order they came, settled or not."""
        return self._pipelines.keys()

    async def pipelines(self) -> list[PipelineFigures]:
        """Return the figures of what runs, in the order it was created; some at a time."""
        told, monotonic = list[PipelineFigures](), self.clock.monotonic
        ends = monotonic() + TURN_SECONDS
        for id in [*self._pipelines]:
            if id in self._pipelines:  # it may have gone meanwhile
                told.append(figures_of(self._pipelines[id]))
                if len(told) % SLICE == 0 or monotonic() >= ends:  # one may have 1,000 inputs
                    await self.clock.sleep(0)
                    ends = monotonic() + TURN_SECONDS
        return told

    def configs(self) -> dict[str, PipelineConfig]:
        """Return the configs of what runs by id, without what may still be refused."""
        return {id: each.config for id, each in self._pipelines.items() if each.is_settled}

    async def pipeline(self, pipeline: str) -> PipelineFigures:
        """Return the figures of one pipeline.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        if pipeline not in self._pipelines:
            raise UnknownPipeline(pipeline)
        return figures_of(self._pipelines[pipeline])

    async def past(self, pipeline: str, resolution: Resolution) -> Past:
        """Return what is known of an id, which may be nothing."""
        return self.history.past(pipeline, resolution)

    async def recent(self, resolution: Resolution, most: int) -> RecentCounts:
        """Return what all that runs counted in so many buckets up to now."""
        return await self.history.recent(resolution, most)

    async def failures(self, most: int) -> LatestFailures:
        """Return so many of the failures of all that runs, those that were seen last."""
        return await self.history.failures(most)

    async def buckets(self) -> list[BucketFigures]:
        """Return the declared buckets, in the order of their names."""
        return await bucket_figures(self.state, self.clock)

    async def bucket(self, name: str, page: BucketPage) -> BucketContents | None:
        """Return what was written last to a bucket (`page_of`); None: none of that name is declared."""
        found = self.state.get(name)
        return None if found is None else await page_of(found, self.clock, page)

    async def sample(self, input: Input, most: int, seconds: float) -> Sample | Unbuilt | Unread:
        """Read up to so many messages of an input within so many seconds, and let go of it.

        Raises:
            TooManySamples: too many are being taken already.
        """
        return await self.samples.take(input, most=most, seconds=seconds)

    async def test(self, connection: Connection) -> Tried:
        """Connect and sign in as a component would, and let go of it.

        Raises:
            TooManyTests: too many wait already.
        """
        return await self._tests.take(connection)

    async def files(self) -> set[Path]:
        """Return the files that what runs was built from."""
        built_on = (each.parts.dependencies for each in self._pipelines.values())
        return {path for each in built_on for path, _ in each.files.values()}

    def way_in(self, pipeline: str) -> WayIn | None:
        """Return the way in of a pipeline over the API; None when it has no `http` input.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        try:
            return self._pipelines[pipeline].parts.way_in
        except KeyError:
            raise UnknownPipeline(pipeline) from None

    def observe(self, interest: Interest = ALL, *, pulse: bool = False) -> Listener:
        """Return a new reader of the live events that somebody has an interest in, and of the pulse."""
        return self._feed.observe(interest, self._pulses if pulse else None)

    def tell(self, change: Change) -> None:
        """Tell those who want to know what somebody has changed."""
        self._feed.publish_change(Event(encode(change), "changed"))

    def capture(self, request: CaptureRequest) -> Capture:
        """Begin a capture, of which its reader is told line by line.

        Raises:
            UnknownPipeline: nobody runs under one of the ids.
            TooManyCaptures: too many are under way.
        """
        for id in request.pipelines:
            if id not in self._pipelines:
                raise UnknownPipeline(id)
        return self._world.captures.begin(request)

    def hush(self) -> None:
        """End every event stream, every capture, and every sample."""
        self._feed.close()
        self._world.captures.end()
        self.samples.end()

    async def close(self) -> None:
        """End everything, upstream first so that inboxes drain, within one grace for all."""
        ends = self.clock.monotonic() + ENDING_SECONDS
        self._is_closed = True
        self._world.captures.end()
        await self.samples.close()
        if self._reverting is not None:
            self._reverting.is_cancelled = True
            await self._reverting.has_ended.wait()  # what ends hands on to what is about to

        async def end(layer: Sequence[Pipeline]) -> None:
            left = max(ends - self.clock.monotonic(), 0.0)
            for each in layer:
                self.graph.remove(each)
            await asyncio.gather(*(each.stop(left) for each in layer))

        await upstream_first(dict(self._pipelines), end)
        self.history.close()
        self._feed.close()

    async def _withdraw(self, made: Sequence[Pipeline]) -> None:
        """Take back pipelines that never ran: nothing is left of them."""
        for each in made:
            self.graph.remove(each)
        with self._changes.leaving():
            await asyncio.gather(*(each.stop(ENDING_SECONDS) for each in made))
        for each in made:
            self.graph.forget(each.id)
        self.graph.settle_decoding()

    async def _prepare(self, configs: Iterable[PipelineConfig]) -> None:
        """Have what is needed to build pipelines, which has to happen before anything is awaited."""
        world = self._world
        if world.environment.is_real:
            world.readings = await prepare(configs, world.connections, world.base, self.clock)

    def _reserved(self, config: PipelineConfig) -> Pipeline:
        """Return a new pipeline, which has its id from now on.

        Raises:
            PipelineExists: its id runs already.
        """
        id = config.id if config.id is not None else generated_id(self._pipelines)
        if id in self._pipelines:
            raise PipelineExists(id)
        self._pipelines[id] = pipeline = self._make(id, config)
        return pipeline

    def _make(self, id: str, config: PipelineConfig, world: World | None = None) -> Pipeline:
        downstream = self.graph.outlets[id]
        return Pipeline(id, config, world or self._world, self._feed, self.history, downstream)


async def _to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what comes of it. Whoever asks may leave: what has begun is finished."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)
