"""The script of a play, over all lives of the process: what one has not taken, the next one does.

What happens while there is no process comes to brokers that keep it, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import merge
from operator import itemgetter

from headrace.authoring.playing.outside import AWAY, LOST, Outside
from headrace.authoring.playing.played import END, Played
from headrace.authoring.playing.playedlife import PlayedLife
from headrace.authoring.playing.scenario import (
    BucketLook,
    GivenArrival,
    GivenState,
    ProcessKill,
    Scenario,
)
from headrace.compiler.clock import ScriptedStep


@dataclass(slots=True)
class _ArmedKill:
    """A kill at a commit that is to come, and how many more there are up to that."""

    kill: ProcessKill
    left: int


class PlayedScript:
    """The script of one play."""

    def __init__(
        self, scenario: Scenario, played: Played, outside: Outside, coming: Iterable[GivenArrival]
    ) -> None:
        """Take what is ``coming`` besides; each is asked for when all before it is through."""
        self._scenario, self._played, self._outside = scenario, played, outside
        self._steps = merge(self._sorted(), self._coming(coming), key=itemgetter(0))
        self._fetched: ScriptedStep | None = None
        """What comes next, if somebody has asked."""
        self._life: PlayedLife | None = None
        self._armed: list[_ArmedKill] = []

    async def live(self, life: PlayedLife) -> None:
        """Have a life take what is left, until everything is over or it is killed."""
        self._life = life
        await life.live(self._left(), (each for each in self._looks() if each.at == END))
        self._life = None

    def skip_to(self, now: float) -> None:
        """Have all happen that does before a moment, while there is no process."""
        while (step := self._next()) is not None and step[0] < now:
            self._take(step[1])

    def end(self) -> None:
        """Tell what has not come about."""
        self._played.survived += [each.kill for each in self._armed]

    def _next(self) -> ScriptedStep | None:
        if self._fetched is None:
            self._fetched = next(self._steps, None)
        return self._fetched

    def _left(self) -> Iterator[ScriptedStep]:
        """Yield what is left; what is asked for and not taken is left yet."""
        while (step := self._next()) is not None and not self._has_ended:
            yield step[0], partial(self._take, step[1])

    def _take(self, do: Callable[[], object]) -> None:
        self._fetched = None
        do()

    def _sorted(self) -> list[ScriptedStep]:
        """Return all that happens up to the end, in the order in which it does."""
        steps: list[ScriptedStep] = [*self._losses()]
        for begins, ends in self._scenario.full:
            steps += [(begins, partial(self._fill, 1))]
            if ends <= self._scenario.until:
                steps += [(ends, partial(self._fill, -1))]
        steps += [(each.at, partial(self._kill, each)) for each in self._scenario.kills]
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
            if self._life is not None:
                self._life.write(step)
        elif step.arriving is None:
            self._lose(step.to, LOST)
        elif self._life is not None:
            self._life.arrive(step.to, step.arriving)
        elif (broker := self._outside.brokers().get(step.to)) is not None:
            broker.miss(step.arriving)
        else:
            self._played.unanswered[step.to[0]] += 1

    def _lose(self, to: tuple[str, int], cause: str) -> None:
        if self._life is not None:
            self._life.lose(to, cause)

    def _look(self, look: BucketLook) -> None:
        if self._life is not None:
            self._life.look(look)

    def _fill(self, count: int) -> None:
        """Have the disk be full for one span more, or less."""
        self._outside.disk.full += count

    def _kill(self, kill: ProcessKill) -> None:
        if kill.commit:
            self._armed.append(_ArmedKill(kill, kill.commit))
            self._outside.disk.is_killed_at = self._is_killed_at
        elif self._life is not None:
            self._life.kill(kill.until)
        else:
            self._played.survived.append(kill)

    def _is_killed_at(self, *, is_committed: bool) -> bool:
        """Return whether the process is killed at a commit that is about to be made, or is made."""
        for each in self._armed:
            each.left -= is_committed
        hit = [
            each
            for each in self._armed
            if each.kill.is_committed == is_committed and each.left == (not is_committed)
        ]
        self._armed = [each for each in self._armed if each not in hit and each.left]
        if not hit or self._life is None:
            return False
        until = max(each.kill.until for each in hit)
        self._outside.disk.on_kill = partial(self._life.kill, until)
        return True
