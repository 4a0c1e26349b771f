"""Failures of one pipeline: counted exactly, logged at once when they are new and summed up after.

    pipeline 'line-1' transforms[0]: mapping 0 ('cast'): ...
    pipeline 'line-1' transforms[0]: 41 more: mapping 0 ('cast'): ...

Counts are kept whether or not anybody watches, and nothing is left out of them. The `count` of the
entries, 1 and 41, has the sum of all that failed as well. When a failure was told of, a while begins in
which those that are the same are counted; when that is over, how many they were is told. Who may post can
have ever new messages, so of one component so many are told of in a while; what else it has counts
as `OTHERS`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, get_args

from headrace.compiler.clock import Clock
from headrace.compiler.component.failingmessages import OTHERS
from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.errors import FailureClass
from headrace.compiler.runtime.monitoring.losses import Losses, LostData, LostMessages
from headrace.compiler.runtime.monitoring.signatures import ComponentKey, Signatures

MOST_BYTES = 2048
LOG_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds between two sums in the log of what goes on failing: a short trial is told of soon, and a
long outage fills no disk."""
MOST_TEXTS = 8
"""Different messages of one component that are told of in a while."""

Hear = Callable[[Stage, int | None, str, FailureClass, int | None, LostData | None], None]
"""Takes each failure, with the messages that are lost by it, or the payload that could not be read."""

About = Callable[[], Mapping[str, Any]]
"""Returns what is told of where something came from."""
KeepFailed = Callable[[Stage, int, str, FailureClass, LostData, About | None], None]
"""Keeps what would be lost by a failure of an input, transform or output, by its index."""

log = logging.getLogger("headrace.pipeline")


def cut(text: str, most: int = MOST_BYTES) -> str:
    """Return ``text`` in at most ``most`` bytes, cut at a character boundary and marked with `…`."""
    if len(text) * 4 <= most:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore") + "…"


class Failures:
    """Counts failures, by stage and in a table of ``signatures``; ``tell`` is told of every one."""

    def __init__(
        self,
        pipeline: str,
        clock: Clock,
        tell: Callable[[Stage, int | None, str, int | None], None],
        signatures: Signatures,
        *,
        is_logged: bool = True,
        hear: Hear | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._tell = tell
        self._is_logged, self._hear = is_logged, hear
        self._logged = Repeats(clock, LOG_PAUSES, self._log)
        self.table = signatures
        self.losses = Losses()
        self.keep: KeepFailed | None = None
        """Keeps what fails, which is not lost then; None: nobody does."""
        self.by_stage: dict[Stage, int] = dict.fromkeys(get_args(Stage), 0)

    def report(
        self,
        stage: Stage,
        component: int | None,
        message: str,
        input_index: int | None = None,
        lost: LostMessages | None = None,
        *,
        failure: FailureClass = "invalid",
    ) -> None:
        """Count one failure and what is lost by it, tell of it, and log it now or with others.

        Of an input that is known ``component`` is None all the same: that is how failures are told apart.
        """
        message = cut(" ".join(message.split()))
        if lost is not None and component is not None:
            if self.keep is None:
                self.losses.add(stage, component, lost.reason, lost.size)
            else:
                self.keep(stage, component, message, failure, lost, None)
        self.by_stage[stage] += 1
        self.table.count(stage, component, message, input_index, failure)
        if self._is_logged:
            self._logged.add(stage, component, message)
        self._tell(stage, component, message, input_index)
        if self._hear is not None:
            self._hear(stage, component, message, failure, input_index, lost)

    def left_out(
        self, why: str, input_index: int, lost: LostData | None, about: About | None = None
    ) -> None:
        """Count one message, payload, or part of one, that an input skips; tell those who read failures."""
        if self.keep is None or lost is None:
            self.losses.add("input", input_index, "error", 1)
        else:
            self.keep("input", input_index, why, "invalid", lost, about)
        if self._hear is not None:
            nothing_known = LostMessages((), "error")
            self._hear("input", None, why, "invalid", input_index, lost or nothing_known)

    def settle(self) -> None:
        """Log what has been counted and not been logged: the pipeline is over."""
        self._logged.settle()

    @property
    def total(self) -> int:
        """How many failures there were."""
        return sum(self.by_stage.values())

    def _log(
        self, place: ComponentKey, count: int, input_index: int | None = None, *, is_more: bool
    ) -> None:
        stage, component, message = place
        where = LIST_OF[stage] + ("" if component is None else f"[{component}]")
        said = f"{count:,} more: {message}" if is_more else message
        log.warning("pipeline '%s' %s: %s", self._pipeline, where, said, extra={"count": count})


class Tell(Protocol):
    """Takes a failure that is told of; ``more`` are so many since it was told of last."""

    def __call__(
        self, place: ComponentKey, count: int, input_index: int | None, *, is_more: bool
    ) -> None:
        """Tell of it, and of the input that failed, if it was one and no other."""


@dataclass(slots=True)
class _Untold:
    """How often a failure came since it was told of, and of which input; None: of several, or none."""

    count: int = 0
    input_index: int | None = None

    def add(self, input_index: int | None) -> None:
        is_same = not self.count or input_index == self.input_index
        self.count += 1
        self.input_index = input_index if is_same else None


class Repeats:
    """Tells of failures, the same ones together.

    ``pauses`` are the seconds between two sums: the first of them after a time without failures, the
    next one for as long as they go on, the last one for ever. A timer runs only while there is
    something to sum up.
    """

    def __init__(self, clock: Clock, pauses: Sequence[float], tell: Tell) -> None:
        self._clock = clock
        self._pauses = pauses
        self._tell = tell
        self._untold: dict[ComponentKey, _Untold] = {}
        self._texts: Counter[tuple[Stage, int | None]] = Counter()
        self._step = 0
        self._until = -inf
        self._timer: asyncio.TimerHandle | None = None

    def add(
        self, stage: Stage, component: int | None, message: str, input_index: int | None = None
    ) -> None:
        """Take one failure: it is told of now, or when this while is over."""
        if self._timer is None and (now := self._clock.monotonic()) >= self._until:
            is_calm = now >= self._until + self._pauses[self._step]
            self._begin(now, 0 if is_calm else self._next)
        place = stage, component, message
        if place in self._untold:
            self._untold[place].add(input_index)
        elif self._texts[place[:2]] < MOST_TEXTS:
            self._texts[place[:2]] += 1
            self._untold[place] = _Untold()
            self._tell(place, 1, input_index, is_more=False)
            return
        else:
            others = stage, component, OTHERS
            self._untold.setdefault(others, _Untold()).add(input_index)
        if self._timer is None:
            self._timer = self._clock.call_at(self._until, self._over)

    def settle(self) -> None:
        """Tell of all that was counted, now: nobody will come back to it."""
        untold = self._counted()
        self.forget()
        for place, each in untold.items():
            self._tell(place, each.count, each.input_index, is_more=True)

    def forget(self) -> None:
        """Start over: nobody has been told of anything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._until = -inf
        self._untold.clear()
        self._texts.clear()

    def _over(self) -> None:
        self._timer = None
        untold = self._counted()
        self._begin(self._clock.monotonic(), self._next)
        for place, each in untold.items():
            if place[2] != OTHERS:
                self._untold[place] = _Untold()
                self._texts[place[:2]] += 1
            self._tell(place, each.count, each.input_index, is_more=True)

    def _counted(self) -> dict[ComponentKey, _Untold]:
        return {place: each for place, each in self._untold.items() if each.count}

    def _begin(self, now: float, step: int) -> None:
        self._untold.clear()
        self._texts.clear()
        self._step = step
        self._until = now + self._pauses[step]

    @property
    def _next(self) -> int:
        return min(self._step + 1, len(self._pauses) - 1)
