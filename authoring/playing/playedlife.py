"""One life of the process that is played: from its start until everything is ended, or it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from headrace.authoring.playing.ends import ScriptedSource
from headrace.authoring.playing.outside import Outside
from headrace.authoring.playing.playedenvironment import PlayedEnvironment
from headrace.authoring.playing.playlength import MOMENTS_EACH, PlayTooLong, busiest
from headrace.authoring.playing.scenario import Arriving, BucketLook, GivenState, Scenario
from headrace.compiler.clock import ScriptedStep, TooManyMoments, VirtualLoop
from headrace.compiler.component.buildcontext import Origin
from headrace.compiler.config.program import Program
from headrace.compiler.formats import FormatMisfit
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.wayin import NoRoom


class PlayedLife:
    """One life.

    What runs in it goes on for the rest of a turn when it is killed, and is cancelled then. Nothing of
    that comes to anybody.
    """

    def __init__(
        self,
        program: Program,
        scenario: Scenario,
        engine: Engine,
        environment: PlayedEnvironment,
        outside: Outside,
        loop: VirtualLoop,
    ) -> None:
        self._program, self._scenario = program, scenario
        self._engine, self._environment = engine, environment
        self._outside, self._loop = outside, loop
        self._played = environment.played
        self._posting: dict[asyncio.Task[None], str] = {}
        """The posts that are not answered, and their pipelines."""
        self._pipelines: Iterable[Pipeline] = engine.graph.pipelines.values()
        self._killed: asyncio.Future[None] = loop.create_future()
        self.starts_again: float | None = None
        """When the next one begins; None: this one was not killed. Units: seconds."""

    async def live(self, steps: Iterable[ScriptedStep], looks: Iterable[BucketLook]) -> None:
        """Take steps, end everything, and look at what buckets hold then; or be killed."""
        if not self._scenario.kills:
            await self._live(steps, looks)
            return
        living = asyncio.ensure_future(self._live(steps, looks))
        await asyncio.wait([living, self._killed], return_when=asyncio.FIRST_COMPLETED)
        if self.starts_again is None:
            living.result()
        else:
            self._loop.set_exception_handler(lambda *_: None)  # what is cancelled may say anything

    async def _live(self, steps: Iterable[ScriptedStep], looks: Iterable[BucketLook]) -> None:
        for id in self._program.named:
            self._engine.graph.outlets[id].subscribe(self._environment.handed_on(id))
        await self._engine.load(self._program)
        try:
            await self._loop.play(steps, self._scenario.max_moments, MOMENTS_EACH)
        except TooManyMoments as cause:
            done = busiest(self._engine.graph.pipelines.values())
            raise PlayTooLong(cause.count, cause.at, done) from cause
        except asyncio.CancelledError:
            await self._engine.close()
            raise
        self._environment.is_over = True
        self._pipelines = [*self._pipelines]
        await self._engine.close()
        for look in looks:
            self.look(look)
        self._count_losses()

    def kill(self, starts_again: float) -> None:
        """Have it end here; the next one begins at a moment, or when this one ended."""
        if self.starts_again is not None:
            return
        self.starts_again = max(starts_again, self._environment.clock.monotonic())
        self._environment.is_killed = True
        self._count_losses()
        self._played.unanswered.update(self._posting.values())
        self._outside.process_killed()
        self._killed.set_result(None)

    def _count_losses(self) -> None:
        for pipeline in self._pipelines:
            for lost in pipeline.failures.losses:
                if lost.count:
                    at = pipeline.id, lost.stage, lost.component
                    self._played.lost[at, lost.reason] += lost.count

    def write(self, given: GivenState) -> None:
        """Write to a bucket."""
        bucket = self._engine.state.get(given.bucket)
        assert bucket is not None  # as who made the scenario has seen
        bucket.merge(given.values)

    def lose(self, to: tuple[str, int], cause: str) -> None:
        """Have the connection of an input be lost."""
        self._sources[to].lose(cause)

    @property
    def _sources(self) -> dict[tuple[str, int], ScriptedSource]:
        return self._environment.sources

    def arrive(self, to: tuple[str, int], arriving: Arriving) -> None:
        """Have something arrive at an input, or be posted to it."""
        if (source := self._sources.get(to)) is not None:
            source.put(arriving)
            return
        pipeline, index = to
        way_in = self._engine.way_in(pipeline)
        if way_in is None:
            return
        payload, origin = arriving.payload, _origin(arriving)
        try:
            if isinstance(payload, bytes):
                taken = way_in.take(payload, origin)
            else:
                taken = way_in.take_json(encode(payload), origin)
        except NoRoom:
            self._played.refused[pipeline] += 1
            return
        except FormatMisfit as cause:
            self._misfit(pipeline, index, cause)
            return
        if not isinstance(taken, int):  # a large one, decoded in slices, or one that is stored
            posting = asyncio.ensure_future(self._posted(pipeline, index, taken))
            self._posting[posting] = pipeline
            posting.add_done_callback(self._posting.pop)

    async def _posted(self, pipeline: str, index: int, taken: Awaitable[int]) -> None:
        try:
            await taken
        except NoRoom:
            self._played.refused[pipeline] += not self._environment.is_killed
        except FormatMisfit as cause:
            self._misfit(pipeline, index, cause)

    def _misfit(self, pipeline: str, index: int, cause: FormatMisfit) -> None:
        """Tell that a post was refused: its client would see why."""
        self._environment.warned(pipeline, f"inputs[{index}]", f"refused a post: {cause}")

    def look(self, look: BucketLook) -> None:
        """Record what a bucket holds."""
        bucket = self._engine.state.get(look.bucket)
        assert bucket is not None  # as who made the scenario has seen
        held = bucket.newest(len(bucket))
        self._played.states[look.bucket, look.at] = {key: values for key, values, _ in held}


def _origin(arriving: Arriving) -> Origin:
    """Return where a post came from, as the server would tell it."""
    meta = arriving.meta
    headers = meta.get("headers") or {}
    named = [(name.lower().encode(), str(value).encode()) for name, value in headers.items()]
    return meta.get("method", "POST"), meta.get("remote_addr"), named
