"""The engine: owns the running graph. Everybody else asks it and touches no pipeline's insides.

`compile` builds and starts one pipeline, `load` a whole file, `dispose` ends one, `observe` gives the
events. Another engine can stand behind the same interface.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.edges import Source
from headrace.compiler.errors import (
    BuildRefused,
    PipelineDeleted,
    PipelineExists,
    Refused,
    UnknownPipeline,
)
from headrace.compiler.language.config import PipelineConfig, Program
from headrace.compiler.language.context import Ingress
from headrace.compiler.language.diagnostics import Diagnostic
from headrace.compiler.language.digits import keeping_digits
from headrace.compiler.language.families import Connection
from headrace.compiler.language.ids import generated_id
from headrace.compiler.language.rules import circle, missing_upstream
from headrace.compiler.language.secrets import Secrets
from headrace.compiler.language.states import BucketDeclaration, bounds_of
from headrace.compiler.runtime.connections import Connections
from headrace.compiler.runtime.context import World
from headrace.compiler.runtime.counters import Counters
from headrace.compiler.runtime.drivers import import_drivers
from headrace.compiler.runtime.failures import Failures
from headrace.compiler.runtime.feed import Feed, Listener
from headrace.compiler.runtime.inbox import Inbox
from headrace.compiler.runtime.pipeline import Pipeline, Status, Taker

OPENING_SECONDS = 5.0
"""How long outputs may take to come up before a create is answered as `starting`."""
ENDING_SECONDS = 3.5
"""How long a pipeline may take to let go of what it holds; its outputs and brokers get a second more."""


@dataclass(frozen=True, slots=True)
class PipelineView:
    """A running pipeline as others see it."""

    id: str
    config: PipelineConfig
    status: Status
    counters: Counters
    failures: Failures
    held: int
    in_flight: int


class Engine:
    """The running graph of pipelines."""

    def __init__(
        self,
        clock: Clock,
        *,
        connections: Mapping[str, Connection] | None = None,
        secrets: Secrets | None = None,
        data_dir: Path | None = None,
        base: Path | None = None,
    ) -> None:
        self.clock = clock
        self.base = base
        self.secrets = secrets or Secrets()
        self.buckets = Buckets(clock)
        self.declarations: Mapping[str, BucketDeclaration] = {}
        self.connections = Connections(connections or {}, self._naming)
        self._feed = Feed(clock)
        self._pipelines: dict[str, Pipeline] = {}
        self._readers: defaultdict[str, list[Taker]] = defaultdict(list)
        self._world = World(
            clock=clock,
            connections=self.connections,
            secrets=self.secrets,
            data_dir=data_dir,
            base=base,
            buckets=self.buckets,
            attach=self._attach,
        )

    async def compile(self, config: PipelineConfig) -> PipelineView:
        """Build one pipeline, bring its outputs up and run it.

        Raises:
            PipelineExists: its id runs already.
            PipelineDeleted: somebody disposed of it meanwhile.
            Refused: with every reason; nothing was started.
        """
        id = config.id if config.id is not None else generated_id(self._pipelines)
        if id in self._pipelines:
            raise PipelineExists(id)
        if rings := list(self._rings(id, config)):
            raise Refused(rings, f"pipeline '{id}' could not be started")
        pipeline = self._make(id, config)
        self._pipelines[id] = pipeline  # reserved while its outputs come up
        self._settle_decoding()
        try:
            await import_drivers([config], self.clock)
            refused = pipeline.build() or await pipeline.open(OPENING_SECONDS, is_awaited=True)
            if self._pipelines.get(id) is not pipeline:
                raise PipelineDeleted(id)
            if refused:
                raise Refused(self._shown(refused), f"pipeline '{id}' could not be started")
        except BaseException:
            await self._withdraw([pipeline])
            raise
        pipeline.run()
        return _view(pipeline)

    async def load(self, program: Program) -> None:
        """Compile all pipelines of a file, or none, and have its buckets and no others.

        Raises:
            Refused: with every reason of every pipeline; nothing was started.
        """
        await import_drivers(program.pipelines, self.clock)
        undeclare = self.buckets.declare(bounds_of(program.buckets))
        declared, self.declarations = self.declarations, program.buckets
        made: list[Pipeline] = []
        try:
            for config in program.pipelines:
                id = config.id if config.id is not None else generated_id(self._pipelines)
                if id in self._pipelines:
                    raise PipelineExists(id)
                self._pipelines[id] = self._make(id, config)
                made.append(self._pipelines[id])
            self._settle_decoding()
            if refused := await _refused(made):
                raise Refused(self._shown(refused))
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
        ended = self._pipelines.pop(pipeline, None)
        if ended is None:
            raise UnknownPipeline(pipeline)
        await ended.stop(ENDING_SECONDS, is_deleted=True)
        self._forget(pipeline)
        self._settle_decoding()

    def pipelines(self) -> list[PipelineView]:
        """Return what runs now, in the order it was created."""
        return [_view(each) for each in self._pipelines.values()]

    def ingress(self, pipeline: str) -> Ingress | None:
        """Return the way in of a pipeline over the API; None when it has no `http` input.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        try:
            return self._pipelines[pipeline].parts.ingress
        except KeyError:
            raise UnknownPipeline(pipeline) from None

    def observe(self) -> Listener:
        """Return a new reader of the live events."""
        return self._feed.observe()

    def hush(self) -> None:
        """End every event stream."""
        self._feed.close()

    async def close(self) -> None:
        """End everything, upstream first so that inboxes drain, within one grace for all."""
        ends = self.clock.monotonic() + ENDING_SECONDS
        order = TopologicalSorter(
            {each.id: self._read_by(each) for each in self._pipelines.values()}
        )
        with suppress(CycleError):  # those that are in one are ended last, and together
            order.prepare()
        while self._pipelines:
            ready = order.get_ready()
            ids = [id for id in ready or self._pipelines if id in self._pipelines]
            layer = [self._pipelines.pop(id) for id in ids]
            left = max(ends - self.clock.monotonic(), 0.0)
            await asyncio.gather(*(each.stop(left) for each in layer))
            order.done(*ready)
        self._feed.close()

    async def _withdraw(self, made: Sequence[Pipeline]) -> None:
        """Take back pipelines that never ran: nothing is left of them."""
        for each in made:
            if self._pipelines.get(each.id) is each:
                del self._pipelines[each.id]
        await asyncio.gather(*(each.stop(ENDING_SECONDS) for each in made))
        for each in made:
            self._forget(each.id)
        self._settle_decoding()

    def _settle_decoding(self) -> None:
        """Have those pipelines keep the digits of numbers whose messages reach who wants them."""
        every = self._pipelines
        keeping = keeping_digits({id: each.config for id, each in every.items()})
        for id, each in every.items():
            each.parts.decoding.keep_digits(keeps=id in keeping)

    def _shown(self, refused: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return refusals without secrets: some are in the words of a driver or of a broker."""
        hide = self.secrets.redact
        return [
            replace(each, message=hide(each.message), found=each.found and hide(each.found))
            for each in refused
        ]

    def _naming(self, connection: str) -> list[str]:
        """Return the pipelines that name a connection, whatever their status."""
        every = self._pipelines.values()
        return [each.id for each in every if connection in each.config.connections]

    def _read_by(self, pipeline: Pipeline) -> list[str]:
        return [id for id in pipeline.config.upstreams if id in self._pipelines]

    def _make(self, id: str, config: PipelineConfig) -> Pipeline:
        return Pipeline(id, config, self._world, self._feed, self._readers[id])

    def _rings(self, id: str, config: PipelineConfig) -> Iterator[Diagnostic]:
        """Yield the readings that would close a ring: of pipelines that waited for this id."""
        for path, upstream in config.readings():
            if ring := self._way(id, upstream):
                yield config.diagnose(circle(ring), path)

    def _way(self, start: str, end: str) -> list[str]:
        """Return the pipelines that messages of one go through to another; empty if there are none."""
        after: dict[str, str | None] = {end: None}
        reached: list[str] = [end]
        for here in reached:
            if here == start:
                way = [here]
                while (following := after[way[-1]]) is not None:
                    way.append(following)
                return way
            if here in self._pipelines:
                read = self._pipelines[here].config.upstreams
                new = [each for each in dict.fromkeys(read) if each not in after]
                after.update(dict.fromkeys(new, here))
                reached += new
        return []

    def _attach(self, upstream: str) -> Source:
        """Return a new inbox that what ``upstream`` hands on is put into."""
        if upstream not in self._pipelines:
            raise BuildRefused(missing_upstream(upstream, list(self._pipelines)))
        inbox = Inbox(upstream, self._detach)
        self._readers[upstream].append(inbox.take)
        self._rewire(upstream)
        return inbox

    def _detach(self, inbox: Inbox) -> None:
        readers = self._readers[inbox.upstream]
        if inbox.take in readers:
            readers.remove(inbox.take)
            self._rewire(inbox.upstream)
        self._forget(inbox.upstream)

    def _forget(self, id: str) -> None:
        """Drop the list of an id that nobody runs under and nobody reads."""
        if id not in self._pipelines and not self._readers.get(id):
            self._readers.pop(id, None)

    def _rewire(self, upstream: str) -> None:
        if running := self._pipelines.get(upstream):
            running.rewire()


async def _refused(made: Sequence[Pipeline]) -> list[Diagnostic]:
    """Build pipelines and start their outputs; return why any of them is refused."""
    refused = [diagnostic for each in made for diagnostic in each.build()]
    if not refused:
        opened = await asyncio.gather(*(each.open(OPENING_SECONDS) for each in made))
        refused = [diagnostic for some in opened for diagnostic in some]
    return refused


def _view(pipeline: Pipeline) -> PipelineView:
    return PipelineView(
        pipeline.id,
        pipeline.config,
        pipeline.status,
        pipeline.counters,
        pipeline.failures,
        pipeline.held,
        pipeline.in_flight,
    )
