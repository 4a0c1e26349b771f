"""Changes of the graph: pipelines are brought in, taken out and exchanged, or all of it at once.

A change that is refused leaves no trace. While all of it changes, single changes wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace as with_changes
from typing import Any, TypeVar

from headrace.compiler.buckets import Bounds
from headrace.compiler.component.pipelineconfig import PipelineConfig, generated_id
from headrace.compiler.component.states import BucketDeclaration, bounds_of
from headrace.compiler.config.program import Program
from headrace.compiler.errors import (
    ChangedMeanwhile,
    PipelineDeleted,
    PipelineExists,
    Refused,
    UnknownPipeline,
)
from headrace.compiler.lint.rings import rings
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.dependencies import prepare
from headrace.compiler.runtime.graph import ChangeLock, Graph, upstream_first
from headrace.compiler.runtime.monitoring.feed import Feed
from headrace.compiler.runtime.monitoring.figures import PipelineFigures, figures_of
from headrace.compiler.runtime.monitoring.pipelinehistory import History
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.revert.plan import Plan
from headrace.compiler.runtime.revert.reverting import (
    NotReverted,
    RevertedInPart,
    Reverting,
    ShuttingDown,
    Target,
)
from headrace.compiler.runtime.world import World

_T = TypeVar("_T")

OPENING_SECONDS = 5.0
"""How long outputs may take to come up before a create is answered as `starting`."""
ENDING_SECONDS = 3.5
"""How long a pipeline may take to let go of what it holds; its outputs and brokers get a second more."""


class GraphChanges:
    """What changes one graph, and the connections and buckets with it."""

    def __init__(
        self, graph: Graph, world: World, connections: Connections, feed: Feed, history: History
    ) -> None:
        self.declarations: Mapping[str, BucketDeclaration] = {}
        """The declarations of the buckets, as the config has them."""
        self._graph, self._world, self._connections = graph, world, connections
        self._feed, self._history = feed, history
        self._pipelines = graph.pipelines
        self._lock = ChangeLock()
        self._reverting: Reverting | None = None
        self._is_shut = False

    async def compile(self, config: PipelineConfig) -> PipelineFigures:
        """Build one pipeline, bring its outputs up and run it.

        Raises:
            PipelineExists: its id runs already.
            PipelineDeleted: somebody disposed of it meanwhile.
            Refused: with every reason; nothing was started.
        """
        await self._lock.passed()
        pipeline = self._reserved(config)
        id = pipeline.id
        try:
            refused = [*rings(id, self._graph.configs())]
            if not refused:
                self._graph.settle()
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
        bounds, storage = bounds_of(program.buckets), self._world.storage
        await self._prepare(program.pipelines, bounds.values())
        refused = [*storage.unkept(program)]
        buckets = self._world.buckets.redeclared(bounds)
        await storage.keep(buckets)
        undeclare = self._world.buckets.install(buckets)
        declared, self.declarations = self.declarations, program.buckets
        made: list[Pipeline] = []
        try:
            for config in program.pipelines:
                made.append(self._reserved(config))
            self._graph.settle()
            refused += [diagnostic for each in made for diagnostic in each.build()]
            if not refused:
                opened = await asyncio.gather(*(each.open(OPENING_SECONDS) for each in made))
                refused = [diagnostic for some in opened for diagnostic in some]
            if refused:
                raise Refused(self._world.shown(refused))
        except BaseException:
            await self._withdraw(made)
            undeclare()
            self.declarations = declared
            await storage.keep(self._world.buckets)
            raise
        for each in made:
            each.run()

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline: its id is free at once, and this returns when its outputs are finished.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        await self._lock.passed()
        ended = self._pipelines.pop(pipeline, None)
        if ended is None:
            raise UnknownPipeline(pipeline)
        ends = self._world.clock.monotonic() + ENDING_SECONDS
        with self._lock.leaving():
            # Meanwhile, for a namesake may come as soon as the id is free.
            left = asyncio.ensure_future(self._world.storage.end_left_over(pipeline))
            await ended.stop(ENDING_SECONDS, is_disposed=True)
            await left
            if not ended.has_ended:
                self._graph.owing.release(pipeline)
                await ended.let_go(max(ends - self._world.clock.monotonic(), 0.0))
        self._graph.forget(pipeline)
        self._graph.settle()

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
        async with self._lock.closed():
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
        async with self._lock.closed():
            target = self._in_place(id, config)
            if seen is not None and figures_of(self._pipelines[id]).version not in seen:
                raise ChangedMeanwhile(f"pipeline '{id}'")
            refused = f"pipeline '{id}' was not exchanged"
            # Others may have come and gone since the config was read.
            if said := self._graph.objections(id, config):
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
        return Target(Program((config,), self.declarations), dict(self._connections), only=id)

    async def _become(self, target: Target) -> Plan:
        """Have what runs be something else. Nobody else may change it meanwhile."""
        if self._is_shut:
            raise ShuttingDown
        reverting = self._reverting = self._revert_to(target)

        def install() -> None:
            self._connections.replace(target.connections)
            self._world.buckets.become(reverting.buckets)
            self.declarations = target.program.buckets

        try:
            return await reverting.run(install)
        finally:
            self._reverting = None

    def _revert_to(self, target: Target) -> Reverting:
        return Reverting(
            target,
            self._graph,
            self._world,
            self._make,
            opening_seconds=OPENING_SECONDS,
            ending_seconds=ENDING_SECONDS,
        )

    def shut(self) -> None:
        """Have no revert and no exchange begin any more."""
        self._is_shut = True

    async def dispose_all(self, deadline: float) -> None:
        """End everything, upstream first so that inboxes drain.

        ``deadline`` is a reading of the monotonic clock, in seconds.
        """
        if self._reverting is not None:
            self._reverting.is_cancelled = True
            await self._reverting.has_ended.wait()  # what ends hands on to what is about to

        async def end_layer(layer: Sequence[Pipeline]) -> None:
            left = max(deadline - self._world.clock.monotonic(), 0.0)
            for each in layer:
                self._graph.remove(each)
            await asyncio.gather(*(each.stop(left) for each in layer))

        ending = dict(self._pipelines)
        await upstream_first(ending, end_layer)
        left = max(deadline - self._world.clock.monotonic(), 0.0)
        await asyncio.gather(*(each.let_go(left) for each in ending.values() if not each.has_ended))

    async def _withdraw(self, made: Sequence[Pipeline]) -> None:
        """Take back pipelines that never ran: nothing is left of them."""
        for each in made:
            self._graph.remove(each)
            each.parts.is_withdrawn = True
        with self._lock.leaving():
            await asyncio.gather(*(each.stop(ENDING_SECONDS) for each in made))
        for each in made:
            self._graph.forget(each.id)
        self._graph.settle()

    async def _prepare(
        self, configs: Iterable[PipelineConfig], buckets: Iterable[Bounds] = ()
    ) -> None:
        """Have what is needed to build pipelines, which has to happen before anything is awaited."""
        world, configs = self._world, [*configs]
        await world.storage.prepare(configs, buckets)
        if world.environment.is_real:
            world.readings = await prepare(configs, world.connections, world.base, world.clock)

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
        downstream = self._graph.outlets[id]
        return Pipeline(id, config, world or self._world, self._feed, self._history, downstream)


async def _to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what comes of it. Whoever asks may leave: what has begun is finished."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)
