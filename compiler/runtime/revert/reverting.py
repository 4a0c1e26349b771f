"""Reverting: the running graph becomes that of a file, and what is as the file wants it goes on.

Everything new is built first, beside what runs: it opens nothing, and a refusal leaves no trace. Then the
new pipelines take the places of the old ones at once. The old ones end, upstream first, with all that
they had taken; meanwhile what is posted to a place, or handed on by a pipeline that goes on, waits for the
new one there. At last the new ones are opened and run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import replace

from headrace.compiler.buckets import Buckets
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import bounds_of
from headrace.compiler.config.program import Program
from headrace.compiler.edges import Source
from headrace.compiler.errors import HeadraceError, Refused
from headrace.compiler.runtime.dependencies import Readings, prepare
from headrace.compiler.runtime.failureinbox import FailureInbox
from headrace.compiler.runtime.graph import Graph, upstream_first
from headrace.compiler.runtime.owinginbox import InboxOwner
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.revert.plan import (
    Comparison,
    Plan,
    Standing,
    compared,
    exchanged,
    plan_of,
)
from headrace.compiler.runtime.revert.storedfates import stored_fates
from headrace.compiler.runtime.selecting import Select
from headrace.compiler.runtime.world import World
from headrace.compiler.text.diagnostics import Diagnostic

_T = TypeVar("_T")


class NotReverted(Refused):
    """What a file says is refused; everything goes on as it was."""

    def __init__(self, diagnostics: Sequence[Diagnostic], subject: str) -> None:
        """Take what is wrong, and what that means; the first file that is refused is named."""
        files = (each.file for each in diagnostics if each.severity == "error" and each.file)
        super().__init__(diagnostics, ": ".join([subject, *islice(files, 1)]))


class RevertedInPart(Refused):
    """Some pipelines of the file were turned down as they were opened: they are `failed`."""


class ShuttingDown(HeadraceError):
    """The server is shutting down; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down")


@dataclass(frozen=True, slots=True)
class Target:
    """What is to run: the pipelines and buckets of a file, and the connections beside it.

    With ``only``, its one pipeline is to run under that id, and all others go on.
    """

    program: Program
    connections: Mapping[str, Connection]
    only: str | None = None

    def compare(self, running: Sequence[Standing], buckets: Buckets) -> Comparison:
        """Compare it with what runs, in a thread."""
        if self.only is None:
            return compared(running, self.program, self.connections, buckets)
        [config] = self.program.pipelines
        return exchanged(running, self.only, config, self.connections, buckets)


class Reverting:
    """One revert. `plan` only looks; `run` does it, once."""

    def __init__(
        self,
        target: Target,
        graph: Graph,
        world: World,
        make: Callable[[str, PipelineConfig, World], Pipeline],
        *,
        opening_seconds: float,
        ending_seconds: float,
    ) -> None:
        """Take what is to run, what does, and what makes a pipeline in a world."""
        self.target = target
        self.buckets = world.buckets.redeclared(bounds_of(target.program.buckets))
        self.has_ended = asyncio.Event()
        """Set when the old pipelines have ended, or when it is clear that they go on."""
        self._graph, self._world, self._make = graph, world, make
        self._opening_seconds, self._ending_seconds = opening_seconds, ending_seconds
        self._joining: dict[str, list[Callable[[], None]]] = {}
        """What has the inboxes of a pipeline take something, when it takes over."""
        self._worlds: list[World] = []
        self.is_cancelled = False
        """Whether it is to change nothing, if it has not begun to."""

    async def plan(self) -> Plan:
        """Return what would be done."""
        running = dict(self._graph.pipelines)  # some may go while they are compared
        comparison = await self._compared(running.values())
        plan = self._planned(comparison, running)
        stored = await self._world.storage.figures()
        if stored is None:
            return plan
        kept = {*plan.pipelines.kept}
        ending = [id for id in running if id not in kept]
        return replace(plan, stored=(*stored_fates(stored.parts, comparison.made, ending),))

    async def run(self, install: Callable[[], None]) -> Plan:
        """Do it and return what was done; ``install`` is called when the new pipelines take over.

        Raises:
            NotReverted: a pipeline cannot be built; nothing was changed.
            RevertedInPart: one was turned down when it was opened. All the others run.
            ShuttingDown: it was cancelled before it changed anything.
        """
        try:
            running = dict(self._graph.pipelines)
            comparison = await self._compared(running.values())
            plan = self._planned(comparison, running)
            kept = {*plan.pipelines.kept}
            old = {id: each for id, each in running.items() if id not in kept}
            made = await self._built(comparison.made, old)
            self._take_over(comparison.wanted, made, install)
            await self._end(old)
        finally:
            self.has_ended.set()
        await self._world.storage.keep(self.buckets)
        # The new pipelines run, each as soon as it is open.
        refused = await self._each(made.values(), self._open)
        if said := [diagnostic for some in refused for diagnostic in some]:
            turned_down = [f"'{id}'" for id, some in zip(made, refused, strict=True) if some]
            raise RevertedInPart(said, f"reverted, but these failed: {', '.join(turned_down)}")
        return replace(plan, lost=sum(each.lost for each in old.values()))

    async def _compared(self, running: Iterable[Pipeline]) -> Comparison:
        standing = [
            Standing(
                each.id,
                each.config,
                each.parts.dependencies,
                each.is_settled,
                each.status == "failed",
            )
            for each in running
        ]
        with self._world.clock.outside():
            return await asyncio.to_thread(self.target.compare, standing, self.buckets)

    def _planned(self, comparison: Comparison, running: Mapping[str, Pipeline]) -> Plan:
        return plan_of(
            comparison,
            running,
            (self._world.connections, self.target.connections),
            (self._world.buckets, self.buckets),
        )

    async def _built(
        self, configs: Mapping[str, PipelineConfig], old: Mapping[str, Pipeline]
    ) -> dict[str, Pipeline]:
        """Build pipelines beside what runs.

        Raises:
            NotReverted: with every reason; nothing is left of them.
        """
        world = self._world
        program = self.target.program
        await world.storage.prepare(configs.values(), bounds_of(program.buckets).values())
        readings = await prepare(configs.values(), self.target.connections, world.base, world.clock)
        made: dict[str, Pipeline] = {}
        refused = [*world.storage.unkept(program)]
        try:
            with self._world.claims.leaving(each.parts for each in old.values()):
                for id, config in configs.items():
                    made[id] = self._make(id, config, self._aside(id, readings))
                    refused += made[id].build()
                    await self._world.clock.sleep(0)  # as `_each` does
            if refused:
                raise NotReverted(self._world.shown(refused), "nothing was changed")
            if self.is_cancelled:
                raise ShuttingDown
        except BaseException:
            await asyncio.gather(*(each.stop(0) for each in made.values()))
            raise
        return made

    def _aside(self, id: str, readings: Readings) -> World:
        """Return the world as it is going to be, for one pipeline."""
        joining = self._joining.setdefault(id, [])

        def attach(upstream: str, select: Select | None, owner: InboxOwner | None) -> Source:
            # It is joined to its upstream later; the file was checked to have it.
            inbox = self._graph.inbox(upstream, [upstream], select, owner)
            joining.append(partial(self._graph.join, inbox))
            return inbox

        def listen(inbox: FailureInbox) -> None:
            joining.append(partial(self._graph.failure_readers.join, inbox))

        world = self._world.aside(self.target.connections, self.buckets, attach, listen)
        world.readings = readings
        self._worlds.append(world)
        return world

    def _take_over(
        self,
        wanted: Mapping[str, PipelineConfig],
        made: Mapping[str, Pipeline],
        install: Callable[[], None],
    ) -> None:
        """Have the graph be the new one, in the order of the file. Nothing is awaited on the way."""
        running = dict(self._graph.pipelines)
        self._graph.pipelines.clear()
        for id, config in wanted.items():
            if id not in made and id not in running:
                continue  # it was being created, and has been refused meanwhile
            pipeline = self._graph.pipelines[id] = made.get(id) or running[id]
            pipeline.config = config  # the same in effect; an echo and a save follow the file
        install()
        for world in self._worlds:
            world.merge(self._world)
        self._graph.settle()

    async def _end(self, old: Mapping[str, Pipeline]) -> None:
        clock = self._world.clock
        ends = clock.monotonic() + self._ending_seconds

        async def hand_over(old: Pipeline) -> None:
            # What comes after the last that it takes goes to the new one. With nothing awaited in
            # between: no batch is for both, or for neither.
            self._join(old.id)
            await old.stop(max(ends - clock.monotonic(), 0.0), is_deleted=True)

        async def end(layer: Sequence[Pipeline]) -> None:
            await self._each(layer, hand_over)

        await upstream_first(old, end)
        if waiting := [each for each in old.values() if not each.has_ended]:
            for each in waiting:
                self._graph.owing.release(each.id)
            left = max(ends - clock.monotonic(), 0.0)
            await self._each(waiting, lambda each: each.let_go(left))
        for id in [*self._joining]:
            self._join(id)
        for id in old:
            self._graph.forget(id)

    def _join(self, id: str) -> None:
        for join in self._joining.pop(id, ()):
            join()

    async def _each(
        self, pipelines: Iterable[Pipeline], act: Callable[[Pipeline], Coroutine[Any, Any, _T]]
    ) -> list[_T]:
        """Have something done with all of them together; a thousand must not hold others up."""
        tasks = []
        for each in pipelines:
            tasks.append(asyncio.ensure_future(act(each)))
            await self._world.clock.sleep(0)
        return await asyncio.gather(*tasks)

    async def _open(self, pipeline: Pipeline) -> list[Diagnostic]:
        # Shown before it ends, which lets go of its credentials.
        refused = self._world.shown(await pipeline.open(self._opening_seconds))
        pipeline.run()
        return refused
