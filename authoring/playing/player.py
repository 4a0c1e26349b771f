"""The player: a program runs once on virtual time, in the build that runs in production.

Order: at each moment first what is due, with all that follows from it; then what the scenario has happen,
in its order, each through before the next; then the looks at buckets. So what comes as a window ends
belongs to the next one, as in production.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from heapq import merge
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from headrace.authoring.playing.ends import AWAY, LOST
from headrace.authoring.playing.played import END, Played
from headrace.authoring.playing.playedenvironment import (
    BatchTaker,
    Lowering,
    NoSecrets,
    PlayedEnvironment,
    Surroundings,
)
from headrace.authoring.playing.playlength import MOMENTS_EACH, PlayTooLong, busiest
from headrace.authoring.playing.scenario import (
    Arriving,
    BucketLook,
    GivenArrival,
    GivenState,
    Scenario,
)
from headrace.compiler.clock import Clock, ScriptedStep, TooManyMoments, VirtualLoop
from headrace.compiler.component.buildcontext import Origin
from headrace.compiler.config.program import Program
from headrace.compiler.formats import FormatMisfit
from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.chain import lower
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.limitedthreads import TimeLimit
from headrace.compiler.runtime.wayin import NoRoom

_T = TypeVar("_T")


def play(
    program: Program,
    scenario: Scenario,
    *,
    base: Path | None = None,
    surroundings: Surroundings | None = None,
    tapped: Collection[tuple[str, int]] = (),
    lowering: Lowering = lower,
    coming: Iterable[GivenArrival] = (),
    taking: Mapping[str, BatchTaker] | None = None,
    limit: TimeLimit | None = None,
    played: Played | None = None,
) -> Played:
    """Play a scenario; ``base`` is the directory that the config names files from.

    Where there are real ``surroundings``, names of connections and secrets are looked up in them.
    ``tapped`` are transforms, by pipeline and index, of which all is recorded that leaves them.
    ``lowering`` makes the operators of chains, as `lowering.chain.lower` does. What is ``coming`` arrives
    besides, in the order of time; each is asked for when all before it is through. ``taking`` are those
    who take what pipelines hand on, by pipeline, in the place of its being recorded. ``limit`` may end
    it early; what came until then is in ``played``.

    Raises:
        Refused: a pipeline cannot be built, with every reason.
        PlayTooLong: it has taken as many moments as it may.
        CancelledError, Interrupted: its time was over.
    """
    record = Played() if played is None else played
    around = surroundings or Surroundings(secrets=NoSecrets(), base=base)

    async def perform(loop: VirtualLoop) -> Played:
        if limit is not None:
            limit.hold()
        clock = Clock(loop)
        environment = PlayedEnvironment(scenario, clock, record, tapped, lowering, taking or {})
        environment.is_real = surroundings is not None
        engine = Engine(
            clock,
            connections=around.connections,
            secrets=around.secrets,
            base=around.base,
            retention_seconds=0,
            environment=environment,
        )
        return await _Play(program, scenario, engine, environment, loop).perform(coming)

    with nullcontext() if surroundings else quiet():  # a server has something to log
        return on_a_loop(perform, scenario)


class _Play:
    """One play."""

    def __init__(
        self,
        program: Program,
        scenario: Scenario,
        engine: Engine,
        environment: PlayedEnvironment,
        loop: VirtualLoop,
    ) -> None:
        self._program, self._scenario = program, scenario
        self._engine, self._environment, self._loop = engine, environment, loop
        self._played = environment.played
        self._posting: set[asyncio.Task[None]] = set()

    async def perform(self, coming: Iterable[GivenArrival]) -> Played:
        """Take all the steps, end everything, and return what came of it."""
        for id in self._program.named:
            self._engine.graph.outlets[id].subscribe(self._environment.handed_on(id))
        await self._engine.load(self._program)
        steps = merge(self._steps(), self._coming(coming), key=itemgetter(0))
        try:
            await self._loop.play(
                takewhile(lambda _: not self._has_ended, steps),
                self._scenario.max_moments,
                MOMENTS_EACH,
            )
        except TooManyMoments as cause:
            done = busiest(self._engine.graph.pipelines.values())
            raise PlayTooLong(cause.count, cause.at, done) from cause
        except asyncio.CancelledError:
            await self._engine.close()
            raise
        self._environment.is_over = True
        await self._engine.close()
        for look in self._looks():
            if look.at == END:
                self._look(look)
        return self._played

    def _steps(self) -> list[ScriptedStep]:
        """Return all that happens up to the end, in the order in which it does."""
        steps = [*self._losses()]
        steps += [
            (each.at, partial(self._do, each))
            for each in self._scenario.steps
            if not isinstance(each, BucketLook)
        ]
        steps += [(each.at, partial(self._look, each)) for each in self._looks() if each.at != END]
        steps.append((self._scenario.until, lambda: None))
        return sorted(steps, key=itemgetter(0))

    @property
    def _has_ended(self) -> bool:
        return self._scenario.ends_on_failure and bool(self._played.failures)

    def _coming(self, coming: Iterable[GivenArrival]) -> Iterator[ScriptedStep]:
        for each in coming:
            yield each.at, partial(self._do, each)

    def _looks(self) -> list[BucketLook]:
        return [each for each in self._scenario.steps if isinstance(each, BucketLook)]

    def _losses(self) -> Iterator[ScriptedStep]:
        """Yield that connections are lost as an outage begins."""
        for (pipeline, stage, index), outages in self._scenario.outages.items():
            for each in outages if stage == "input" else ():
                yield each.begins, partial(self._lose, (pipeline, index), AWAY)

    def _do(self, step: GivenArrival | GivenState) -> None:
        if self._has_ended:  # while time moved on to this
            return
        if isinstance(step, GivenState):
            bucket = self._engine.state.get(step.bucket)
            assert bucket is not None  # as who made the scenario has seen
            bucket.merge(step.values)
        elif step.arriving is None:
            self._lose(step.to, LOST)
        else:
            self._arrive(step.to, step.arriving)

    def _lose(self, to: tuple[str, int], cause: str) -> None:
        self._environment.sources[to].lose(cause)

    def _arrive(self, to: tuple[str, int], arriving: Arriving) -> None:
        if (source := self._environment.sources.get(to)) is not None:
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
            self._posting.add(posting)
            posting.add_done_callback(self._posting.discard)

    async def _posted(self, pipeline: str, index: int, taken: Awaitable[int]) -> None:
        try:
            await taken
        except NoRoom:
            self._played.refused[pipeline] += 1
        except FormatMisfit as cause:
            self._misfit(pipeline, index, cause)

    def _misfit(self, pipeline: str, index: int, cause: FormatMisfit) -> None:
        """Tell that a post was refused: its client would see why."""
        self._environment.warned(pipeline, f"inputs[{index}]", f"refused a post: {cause}")

    def _look(self, look: BucketLook) -> None:
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


def on_a_loop(perform: Callable[[VirtualLoop], Coroutine[Any, Any, _T]], scenario: Scenario) -> _T:
    """Run on a virtual loop of its own; where this thread has a loop that runs, in another thread."""

    def run() -> _T:
        loop = VirtualLoop(started_at=scenario.started_at, patience=scenario.patience)
        made: list[_T] = []

        async def kept() -> None:
            # Not as the result of the task: the runner hands its handler of SIGINT, which has the task,
            # to `signal`, and that has it shown as text, with the result, however large.
            made.append(await perform(loop))

        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(kept())
        return made[0]

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


@contextmanager
def quiet() -> Iterator[None]:
    """Have nothing logged: what pipelines say is recorded."""
    log = logging.getLogger("headrace")
    was, log.disabled = log.disabled, True
    propagated, log.propagate = log.propagate, False
    nowhere = logging.NullHandler()
    log.addHandler(nowhere)
    try:
        yield
    finally:
        log.removeHandler(nowhere)
        log.propagate, log.disabled = propagated, was
