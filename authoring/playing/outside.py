"""What is outside of a played process and outlives it: brokers, servers that outputs write to, the disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from headrace.authoring.playing.scenario import Arriving, ComponentAt, Scenario, ServerOutage
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import BatchFailed, FailureClass, Unreachable

if TYPE_CHECKING:
    from headrace.compiler.store.memorydisk import MemoryDisk

AWAY = "does not answer, as the test says"
LOST = "the connection is lost, as the test says"
UNANSWERED = "took it and did not answer, as the test says"

Matches = Callable[[JsonValue, JsonValue], bool]
"""Returns whether what is there is as it is written."""
Take = Callable[[Batch], None]


class PlayedChance(Random):
    """Chance that is the same each time, and none at all where it varies pauses."""

    def uniform(self, a: float, b: float) -> float:
        """Return the middle."""
        return (a + b) / 2


class PlayedBroker:
    """What a broker has for one input of one process, and what it has been told of that."""

    def __init__(self) -> None:
        self.waiting: deque[Arrival] = deque()
        """What has arrived and was not handed out."""
        self.is_kept = False
        """Whether what nobody reads is kept."""
        self.missed: list[Arriving] = []
        """What has come while there was no process, undecoded."""
        self._next = self._first_owed = 0
        self._finished: set[int] = set()
        self._owed: dict[int, Arrival] = {}
        """By number, in order: what was handed out and is not acknowledged, where it is kept."""

    def put(self, payload: Any, meta: Mapping[str, Any]) -> None:
        """Have something arrive."""
        self.waiting.append((payload, (self._next, meta)))
        self._next += 1

    def hand_out(self) -> list[Arrival]:
        """Return all that waits."""
        some = [*self.waiting]
        self.waiting.clear()
        if self.is_kept:
            self._owed.update((origin[0], (payload, origin)) for payload, origin in some)
        return some

    def acknowledge(self, numbers: Sequence[int]) -> Iterator[int]:
        """Take which arrivals need not come again: each when none before it need, as brokers are told.

        Yield those, counted from 0.
        """
        self._finished.update(numbers)
        while self._first_owed in self._finished:
            self._finished.remove(self._first_owed)
            self._owed.pop(self._first_owed, None)
            yield self._first_owed
            self._first_owed += 1

    def after_kill(self) -> PlayedBroker:
        """Return what it has for the next process, now that this one is killed.

        What was not acknowledged comes again, before anything else, if it is kept; else all is gone.
        """
        after = PlayedBroker()
        after.is_kept, after._next = self.is_kept, self._next
        after._first_owed = self._first_owed if self.is_kept else self._next
        if self.is_kept:
            after.waiting.extend([*self._owed.values(), *self.waiting])
        return after

    def miss(self, arriving: Arriving) -> None:
        """Have something arrive while there is no process."""
        if self.is_kept:
            self.missed.append(arriving)


def _rank(outage: ServerOutage) -> int:
    if outage.kind == "down":
        return 0
    return 1 if outage.is_selective else 2


class PlayedServer:
    """The other side of one output, with what is wrong with it when.

    Of what is wrong at the same time the first counts: that it is down, then that it refuses what a message
    says, then whatever else.
    """

    def __init__(self, outages: Sequence[ServerOutage], matches: Matches) -> None:
        self._outages, self._matches = sorted(outages, key=_rank), matches
        self._counts = [0] * len(outages)

    @property
    def has_faults(self) -> bool:
        """Whether anything is ever wrong with it."""
        return bool(self._outages)

    def fault(self, now: float, batch: Batch) -> ServerOutage | None:
        """Return what is wrong as a batch comes; None: it is taken."""
        for index, each in enumerate(self._outages):
            if not each.begins <= now < each.ends:
                continue
            if each.is_selective:
                if self.refused(each, batch):
                    return each
            elif each.kind in ("down", "slow"):
                return each
            else:
                count = self._counts[index]
                self._counts[index] += 1
                if count % each.of < each.refused:
                    return each
        return None

    def after_kill(self) -> PlayedServer:
        """Return what it is for the next process, now that this one is killed."""
        after = PlayedServer(self._outages, self._matches)
        after._counts[:] = self._counts
        return after

    def refused(self, outage: ServerOutage, batch: Batch) -> list[int]:
        """Return the indices of the messages that an outage has refused; all, if it is not about some."""
        if not outage.is_selective:
            return [*range(len(batch))]
        return [at for at, each in enumerate(batch) if self._matches(outage.like, each)]


class Outside:
    """All that is outside of the processes of one play."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        # A text that has no UTF-8, as the name of a file may be, is no seed.
        self.random = PlayedChance(scenario.seed.encode(errors="surrogatepass"))
        self._brokers: dict[tuple[str, int], PlayedBroker] = {}
        self._servers: dict[ComponentAt, PlayedServer] = {}

    @cached_property
    def disk(self) -> MemoryDisk:
        """What stores are kept on."""
        from headrace.compiler.store.memorydisk import MemoryDisk

        return MemoryDisk()

    @property
    def has_disk(self) -> bool:
        """Whether anything has asked for the disk."""
        return "disk" in vars(self)

    def broker(self, pipeline: str, index: int) -> PlayedBroker:
        """Return what stands behind an input."""
        return self._brokers.setdefault((pipeline, index), PlayedBroker())

    def brokers(self) -> Mapping[tuple[str, int], PlayedBroker]:
        """Return what stands behind inputs, by pipeline and index."""
        return self._brokers

    def server(self, at: ComponentAt) -> PlayedServer:
        """Return what an output writes to."""
        if at not in self._servers:
            outages = self._scenario.outages.get(at, ())
            self._servers[at] = PlayedServer(outages, self._scenario.matches)
        return self._servers[at]

    def process_killed(self) -> None:
        """Have nothing that the process that is killed does yet come to anybody."""
        if self.has_disk:
            self.disk.kill()
        self._brokers = {at: each.after_kill() for at, each in self._brokers.items()}
        self._servers = {at: each.after_kill() for at, each in self._servers.items()}


def refusal(
    outage: ServerOutage,
    batch: Batch,
    at_fault: Sequence[int],
    how: str,
    take: Take | None,
) -> BatchFailed:
    """Return the failure of a batch that is refused, as the kind of its output would tell it.

    ``how`` is how the kind finds out who is at fault (`Bisection.how`); where it is told by index, ``take``
    takes all others, None: nobody has asked for it.
    """
    failure: FailureClass = outage.failure or "invalid"
    told = (
        outage.says
        or f"refused{f' as {outage.failure}' if outage.failure else ''}, as the test says"
    )
    if failure == "unavailable":
        return Unreachable(told, failure, is_answered=True)
    if failure != "invalid":
        return BatchFailed(told, failure, is_answered=failure == "misconfigured")
    if how != "index" or take is None:
        return BatchFailed(told, failure, is_answered=True, took_nothing=how == "halves")
    refused = dict.fromkeys(at_fault, told)
    done = [at for at in range(len(batch)) if at not in refused]
    if done:
        take([batch[at] for at in done])
    return BatchFailed(told, failure, done=done, refused=refused, is_answered=True)
