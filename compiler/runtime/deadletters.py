"""What one run of a pipeline cannot do is put down as dead letters.

Nobody is told that something was taken or written before what failed of it is on the disk (`when_kept`). Of
what an output refuses nothing is given up: it waits for room, and with it the batch it came from. Of inputs
and transforms the oldest letters go for newer ones, as whoever sends must not be able to stop a pipeline;
what the disk does not take then is lost, and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.compiler.clock import EPOCH, MICROSECOND, Clock
from headrace.compiler.component.deadletteroptions import DeadLetterOptions
from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.errors import FailureClass
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.monitoring.failures import About, Repeats, cut
from headrace.compiler.runtime.monitoring.losses import Losses, LossReason, LostData, LostMessages
from headrace.compiler.runtime.monitoring.namedevents import DeadLettersEvent
from headrace.compiler.runtime.monitoring.signatures import ComponentKey
from headrace.compiler.runtime.queuedbatch import entry_of_batch, entry_of_large
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedarrival import packed
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.letterrows import DroppedLetters, Letter

ROOM_SECONDS = 0.25
"""How often it is tried to put down what waits for room."""
MOST_BYTES_COMING = 32 * 2**20
"""Bytes of letters that are in memory until they are on the disk: of what inputs and transforms have beyond
that nothing is put down, it is lost and counted."""
MOST_ENCODING = 16
"""The same of large batches that are being encoded."""
TOO_FAST = "they come faster than the disk takes them"
TOLD_PAUSES = (1.0, 1.0)
"""Seconds between two events about what fails alike."""
DETAIL_BYTES = 8 * 1024
"""Of what was said of a letter, at most."""
UNREADABLE = "it cannot be written as JSON"


NoteFailure = Callable[[str, FailureClass], None]
"""Is told how something failed: what was said, and the class."""


class FailedPlace(NamedTuple):
    """Where in a pipeline something failed: the stage, and the index in its list."""

    stage: Stage
    at: int


def targets_of(config: PipelineConfig) -> dict[FailedPlace, str]:
    """Return what tells the components of a pipeline apart: the kind; of outputs, what they write to."""
    return {
        FailedPlace(stage, at): each.kept_as() if isinstance(each, QueuedOutput) else each.kind
        for name, stage in FAMILY_OF.items()
        for at, each in enumerate(getattr(config, name))
    }


class PutDown(NamedTuple):
    """A letter on its way to the disk."""

    number: int
    place: FailedPlace
    letter: Letter
    body: bytes
    reason: LossReason
    """Why its messages are lost, should it not get there."""


class DeadLetters:
    """The dead letters that one run of a pipeline puts down."""

    def __init__(
        self,
        pipeline: str,
        options: DeadLetterOptions,
        storage: Storage,
        clock: Clock,
        losses: Losses,
        warn: Callable[[str], None],
        tell: Callable[[DeadLettersEvent], None],
    ) -> None:
        """Take what counts what is lost all the same, who is told why letters wait, and of each letter."""
        self._pipeline, self._storage, self._clock = pipeline, storage, clock
        self._max_bytes, self._losses, self._warn = options.max_bytes, losses, warn
        self._tell, self._told = tell, Repeats(clock, TOLD_PAUSES, self._tell_of)
        self._config: str | None = None
        self._targets: Mapping[FailedPlace, str] = {}
        self.put_down = Counter[str]()
        """How many letters this run has put on the disk, by stage."""
        self._looked_for: dict[int, tuple[Batch, NoteFailure]] = {}
        """By their ids as objects: the batches that are no new letters where they fail, and who is told."""
        self._last = 0
        self._pending: dict[int, None] = {}
        """The numbers of what is not on the disk, in order."""
        self._after: deque[tuple[int, Callable[[], None]]] = deque()
        """What is done when all up to a number is on the disk."""
        self._bytes_coming = 0
        """Of bodies that are being written. Units: bytes."""
        self._waiting: deque[PutDown] = deque()
        """What outputs have refused and there was no room for, in order."""
        self._encoding: set[asyncio.Task[None]] = set()
        self._trying: asyncio.Task[None] | None = None
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def begin(self, config: str, targets: Mapping[FailedPlace, str]) -> None:
        """Hear of letters that go to make room: the run has begun.

        ``config`` tells its config from others; ``targets`` are what tells its components from others.
        """
        self._config, self._targets = config, targets
        self._storage.hear_of_letters(self._pipeline, self._dropped)

    def take(
        self,
        stage: Stage,
        index: int,
        message: str,
        failure: FailureClass,
        lost: LostData,
        about: About | None = None,
    ) -> None:
        """Put down what failed, such as what an output has not written; see `Failures.keep`."""
        place = FailedPlace(stage, index)
        if isinstance(lost, bytes):
            self._arrival(place, message, failure, lost, about, is_json=False)
        elif (looked_for := self._looked_for.get(id(lost.messages))) is not None:
            looked_for[1](message, failure)
        elif stage == "input":
            for each in lost.told():
                self._try_arrival(place, message, failure, each.message, about)
        else:
            for detail, messages in _alike(lost):
                self._messages(place, message, failure, detail, messages, lost.reason)

    def keep_entry(self, place: FailedPlace, why: str, entry: bytes, messages: int) -> Group | None:
        """Put down an entry that has ended the process.

        Return what it is committed with; None: it is not, and whoever asks counts it as lost.
        """
        records = self._storage.records
        letter = self._letter(place, why, "invalid", None, messages, stage="process")
        if records is None:
            return None
        try:
            group = records.append(letter, entry, self._max_bytes, drops_oldest=True)
        except StoreFailed:
            return None
        group.tell.append(partial(self._entry_committed, group, letter))
        return group

    def _entry_committed(self, group: Group, letter: Letter) -> None:
        if group.cause is None:
            self._count(letter)

    def _count(self, letter: Letter) -> None:
        """Count a letter that is on the disk, and tell of it."""
        self.put_down[letter.stage] += 1
        stage: Any = (
            letter.stage
        )  # "process" is no stage of failures, and is told apart all the same
        self._told.add(stage, letter.component, letter.message)

    def _tell_of(
        self, place: ComponentKey, count: int, input_index: int | None, *, is_more: bool
    ) -> None:
        stage, component, message = place
        now = self._clock.millis()
        self._tell(DeadLettersEvent(self._pipeline, stage, component, message, count, now))

    def look_for(self, batch: Batch, note: NoteFailure) -> Callable[[], None]:
        """Have somebody be told how a batch fails, which is no new letter then: it is one already.

        Return what is called when it has left.
        """
        self._looked_for[id(batch)] = batch, note  # which keeps it, so that no other has its id

        def has_left() -> None:
            self._looked_for.pop(id(batch), None)

        return has_left

    def when_kept(self, action: Callable[[], None]) -> None:
        """Do something when all is on the disk that has been put down until now: at once, mostly."""
        if self._pending:
            self._after.append((self._last, action))
        else:
            action()

    async def drained(self) -> None:
        """Wait until all is on the disk."""
        await self._is_idle.wait()

    def abandon(self, *, comes_again: bool) -> int:
        """Give up what waits for room: the time is over. Return how many messages are lost by that."""
        waiting, self._waiting = self._waiting, deque()
        self._after.clear()  # nobody may take for written what is not
        lost = 0
        for each in waiting:
            if not comes_again:
                lost += each.letter.messages
                self._losses.add(each.place.stage, each.place.at, "stopped", each.letter.messages)
            self._ended(each.number)
        return lost

    def close(self) -> None:
        """Hear no more of what goes."""
        self._told.settle()
        self._storage.hear_no_more(self._pipeline, self._dropped)
        if self._trying is not None:
            self._trying.cancel()

    def _dropped(self, dropped: DroppedLetters) -> None:
        """Count as lost what has gone to make room; of inputs which one it was is not known any more."""
        stage: Any = "input" if dropped.stage == "process" else dropped.stage
        self._losses.add(stage, dropped.component or 0, "dropped", dropped.messages)

    def _try_arrival(
        self,
        place: FailedPlace,
        message: str,
        failure: FailureClass,
        arrived: Any,
        about: About | None,
    ) -> None:
        try:
            payload = encode(arrived)
        except (ValueError, TypeError, RecursionError):
            self._lose(place, "error", 1, UNREADABLE)
        else:
            self._arrival(place, message, failure, payload, about, is_json=True)

    def _arrival(
        self,
        place: FailedPlace,
        message: str,
        failure: FailureClass,
        payload: bytes,
        about: About | None,
        *,
        is_json: bool,
    ) -> None:
        told = dict(about()) if about is not None else {}
        at = _micros(told.pop("received_at", None)) or self._clock.micros()
        body = packed(payload, told, at, is_json=is_json)
        letter = self._letter(place, message, failure, None, 1, received_at=at / 1e6)
        self._append(PutDown(self._begun(), place, letter, body, "error"), drops=True)

    def _messages(
        self,
        place: FailedPlace,
        message: str,
        failure: FailureClass,
        detail: str | None,
        messages: Batch,
        reason: LossReason,
    ) -> None:
        letter = self._letter(place, message, failure, detail, len(messages))
        number = self._begun()
        if is_large(messages):
            if len(self._encoding) >= MOST_ENCODING and place.stage != "output":
                self._lose(place, reason, letter.messages, TOO_FAST)
                self._ended(number)
                return
            work = self._encode(number, place, letter, messages, reason)
            task = asyncio.ensure_future(work)
            self._encoding.add(task)
            task.add_done_callback(self._encoding.discard)
            return
        body: bytes | None = None
        with suppress(ValueError, TypeError, RecursionError):
            body = entry_of_batch(messages)
        self._encoded(number, place, letter, body, reason)

    async def _encode(
        self,
        number: int,
        place: FailedPlace,
        letter: Letter,
        messages: Batch,
        reason: LossReason,
    ) -> None:
        """Encode many messages; others have their turn meanwhile."""
        body: bytes | None = None
        with suppress(ValueError, TypeError, RecursionError):
            body = await entry_of_large(messages, self._clock)
        self._encoded(number, place, letter, body, reason)

    def _encoded(
        self,
        number: int,
        place: FailedPlace,
        letter: Letter,
        body: bytes | None,
        reason: LossReason,
    ) -> None:
        if body is None:
            self._lose(place, reason, letter.messages, UNREADABLE)
            self._ended(number)
            return
        put = PutDown(number, place, letter, body, reason)
        if place.stage != "output":
            self._append(put, drops=True)
        elif self._waiting or self._append(put, drops=False) is None:
            self._wait(put)

    def _letter(
        self,
        place: FailedPlace,
        message: str,
        failure: FailureClass,
        detail: str | None,
        messages: int,
        *,
        stage: str | None = None,
        received_at: float | None = None,
    ) -> Letter:
        from headrace.compiler.store.letterrows import Letter

        now = self._clock.micros() / 1e6
        said = None if detail is None else cut(detail, DETAIL_BYTES)
        is_input = place.stage == "input"
        return Letter(
            self._pipeline,
            stage or place.stage,
            None if is_input else place.at,
            place.at if is_input else None,
            self._targets.get(place),
            failure,
            cut(" ".join(message.split())),
            said,
            now,
            now,
            1,
            failure == "unclear",
            received_at,
            self._config,
            messages,
        )

    def _begun(self) -> int:
        self._last += 1
        self._pending[self._last] = None
        self._is_idle.clear()
        return self._last

    def _append(self, put: PutDown, *, drops: bool) -> Group | None:
        """Begin to put a letter down; return what it is committed with, None: it cannot be now."""
        records = self._storage.records
        try:
            if records is None:
                raise StoreFailed("the store is closed")
            if drops and self._bytes_coming >= MOST_BYTES_COMING:
                raise StoreFailed(TOO_FAST)
            group = records.append(put.letter, put.body, self._max_bytes, drops_oldest=drops)
        except StoreFailed as cause:
            if drops or not self._could_fit(put):
                self._lost(put, str(cause))
            elif not self._waiting:
                self._warn(f"output {put.place.at} waits for room for its dead letters: {cause}")
            return None
        self._bytes_coming += len(put.body)
        group.tell.append(partial(self._committed, group, put, drops=drops))
        return group

    def _could_fit(self, put: PutDown) -> bool:
        """Return whether there would be room for a letter if there were no other."""
        from headrace.compiler.store.letterrecords import room_for

        return room_for(put.letter, put.body) <= self._max_bytes

    def _committed(self, group: Group, put: PutDown, *, drops: bool) -> None:
        self._bytes_coming -= len(put.body)
        if group.cause is None:
            self._count(put.letter)
            self._ended(put.number)
        elif drops:
            self._lost(put, str(group.cause))
        else:
            self._wait(put)

    def _lost(self, put: PutDown, why: str) -> None:
        self._lose(put.place, put.reason, put.letter.messages, why)
        self._ended(put.number)

    def _lose(self, place: FailedPlace, reason: LossReason, messages: int, why: str) -> None:
        """Count as lost what is not put down."""
        self._losses.add(place.stage, place.at, reason, messages)
        self._warn(f"messages lost that could not be put down as dead letters: {why}")

    def _wait(self, put: PutDown) -> None:
        """Have a letter of an output wait for room, behind those that do."""
        if put.number not in self._pending:
            return  # it did not fit, and is lost
        self._waiting.append(put)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.ensure_future(self._try_again())

    async def _try_again(self) -> None:
        """Put down what waits, in order, as soon as there is room."""
        while self._waiting:
            await self._clock.sleep(ROOM_SECONDS)
            while self._waiting:
                first = self._waiting[0]
                if self._append(first, drops=False) is None and first.number in self._pending:
                    break
                self._waiting.popleft()

    def _ended(self, number: int) -> None:
        """Take note that a letter is on the disk, or will never be."""
        self._pending.pop(number, None)
        oldest = next(iter(self._pending), inf)
        while self._after and self._after[0][0] < oldest:
            self._after.popleft()[1]()
        if not self._pending:
            self._is_idle.set()


def _alike(lost: LostMessages) -> Iterator[tuple[str | None, Batch]]:
    """Yield what is lost, those messages together of which the same was said."""
    if not lost.done and not lost.refused and isinstance(lost.messages, list):
        yield None, lost.messages
        return
    makes = LargeList if isinstance(lost.messages, list) and is_large(lost.messages) else list
    alike: dict[str | None, Batch] = {}
    done = frozenset(lost.done)
    for index, message in enumerate(lost.messages):
        if index not in done:
            said = lost.refused.get(index)
            some = alike.get(said)
            if some is None:
                some = alike[said] = makes()
            some.append(message)
    yield from ((said and lost.redact(said), some) for said, some in alike.items())


def _micros(moment: Any) -> int | None:
    """Return a time as it is told of, in microseconds since 1970; None: it is none."""
    if not isinstance(moment, str):
        return None
    return (datetime.fromisoformat(moment) - EPOCH) // MICROSECOND
