"""The player: a program runs on virtual time, in the build that runs in production.

It runs once, or as often as its process is killed besides: each life has a loop of its own.

Order: at each moment first what is due, with all that follows from it; then what the scenario has happen,
in its order, each through before the next; then the looks at buckets. So what comes as a window ends
belongs to the next one, as in production.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headrace.authoring.playing.outside import Outside
from headrace.authoring.playing.played import Played
from headrace.authoring.playing.playedenvironment import (
    BatchTaker,
    Lowering,
    NoSecrets,
    PlayedEnvironment,
    Surroundings,
)
from headrace.authoring.playing.playedletters import letters_on
from headrace.authoring.playing.playedlife import PlayedLife
from headrace.authoring.playing.playedscript import PlayedScript
from headrace.authoring.playing.scenario import GivenArrival, Scenario
from headrace.compiler.clock import Clock, VirtualLoop
from headrace.compiler.config.program import Program
from headrace.compiler.lowering.chain import lower
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.limitedthreads import TimeLimit

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
    outside = Outside(scenario)
    script = PlayedScript(scenario, record, outside, coming)
    around = surroundings or Surroundings(secrets=NoSecrets(), base=base)

    async def perform(loop: VirtualLoop) -> PlayedLife:
        if limit is not None:
            limit.hold()
        clock = Clock(loop)
        environment = PlayedEnvironment(
            scenario, clock, record, tapped, lowering, taking or {}, outside
        )
        environment.is_real = surroundings is not None
        engine = Engine(
            clock,
            connections=around.connections,
            secrets=around.secrets,
            base=around.base,
            retention_seconds=0,
            environment=environment,
        )
        life = PlayedLife(program, scenario, engine, environment, outside, loop)
        await script.live(life)
        return life

    with nullcontext() if surroundings else quiet():  # a server has something to log
        now = 0.0
        while (life := on_a_loop(perform, scenario, now)).starts_again is not None:
            now = life.starts_again
            script.skip_to(now)
            if now > scenario.until:
                break
        if outside.has_disk and outside.disk.is_used:
            read = partial(letters_on, outside.disk, program)
            record.letters += on_a_loop(read, scenario, scenario.until)
    script.end()
    return record


def on_a_loop(
    perform: Callable[[VirtualLoop], Coroutine[Any, Any, _T]], scenario: Scenario, now: float = 0.0
) -> _T:
    """Run on a virtual loop of its own, on which it is ``now``.

    Where this thread has a loop that runs, in another thread.
    """

    def run() -> _T:
        loop = VirtualLoop(started_at=scenario.started_at, patience=scenario.patience, now=now)
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
