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
from dataclasses import dataclass
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
from headrace.compiler.largejson import LargeList, WritingTurn
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
"""Bytes of letters that are being written before the next ones wait for that."""
MOST_COMING = 500_000
"""Messages of inputs and transforms that wait for that, roughly, a long payload being several. What comes
faster for longer than the disk takes it is lost, and counted."""
MOST_TOGETHER = 1_000
"""Messages of an input that become one letter, if they failed alike one behind the other."""
WEIGHS = 128
"""Bytes of a payload that count as a message."""
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


@dataclass(slots=True)
class FailedPart:
    """What failed alike of one batch, or a payload: what is about to become a letter."""

    number: int
    place: FailedPlace
    message: str
    failure: FailureClass
    detail: str | None
    reason: LossReason
    """Why its messages are lost, should it become none."""
    at: int
    """When it failed. Units: microseconds since 1970."""
    messages: Batch
    payload: bytes | None = None
    """Of an input, what no message could be made of."""
    about: dict[str, Any] | None = None
    """Of an input, where it came from."""

    @property
    def count(self) -> int:
        """How many messages it is."""
        return len(self.messages) if self.payload is None else 1

    @property
    def weight(self) -> int:
        """How much it counts of what may wait."""
        return self.count if self.payload is None else 1 + len(self.payload) // WEIGHS


class PutDown(NamedTuple):
    """A letter on its way to the disk."""

    part: FailedPart
    letter: Letter
    body: bytes


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
        self._coming: deque[FailedPart] = deque()
        """What is to be put down, in order."""
        self._weight_coming = self._bytes_coming = 0
        """Of what inputs and transforms have in there, as `FailedPart.weight`; and of the bodies that are
        being written. Units: bytes."""
        self._written = asyncio.Event()
        """Set whenever something was written, or could not be."""
        self._is_over: bool | None = None
        """Set at the end of the run: whether what is not put down comes again."""
        self._waiting: deque[PutDown] = deque()
        """What outputs have refused and there was no room for, in order."""
        self._putting: asyncio.Task[None] | None = None
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
            self._arrived(place, message, failure, about, [], lost)
        elif (looked_for := self._looked_for.get(id(lost.messages))) is not None:
            looked_for[1](message, failure)
        elif stage == "input":
            for each in lost.told():
                self._arrived(place, message, failure, about, [each.message], None)
        else:
            at = self._clock.micros()
            for detail, messages in _alike(lost):
                self._come(
                    FailedPart(0, place, message, failure, detail, lost.reason, at, messages)
                )

    def _arrived(
        self,
        place: FailedPlace,
        message: str,
        failure: FailureClass,
        about: About | None,
        messages: Batch,
        payload: bytes | None,
    ) -> None:
        """Have what an input left out be put down, with others that it left out just before alike."""
        told = dict(about()) if about is not None else {}
        at = _micros(told.pop("received_at", None)) or self._clock.micros()
        last = self._coming[-1] if self._coming else None
        if (
            payload is None
            and last is not None
            and last.payload is None
            and (last.place, last.message, last.about) == (place, message, told)
            and len(last.messages) < MOST_TOGETHER
            and self._weight_coming < MOST_COMING
        ):
            last.messages += messages
            self._weight_coming += len(messages)
            return
        self._come(
            FailedPart(0, place, message, failure, None, "error", at, messages, payload, told)
        )

    def _come(self, part: FailedPart) -> None:
        """Have something be put down, behind what came before."""
        if part.place.stage != "output":
            if self._weight_coming >= MOST_COMING:
                self._lose(part, TOO_FAST)
                return
            self._weight_coming += part.weight
        self._last = part.number = self._last + 1
        self._pending[part.number] = None
        self._is_idle.clear()
        self._coming.append(part)
        if self._putting is None or self._putting.done():
            self._putting = asyncio.ensure_future(self._put_all())

    async def _put_all(self) -> None:
        """Put down what has come; others have their turn meanwhile."""
        turn = WritingTurn(self._clock)
        while self._coming:
            while self._bytes_coming >= MOST_BYTES_COMING:
                self._written.clear()
                await self._written.wait()
            part = self._coming.popleft()
            if part.place.stage != "output":
                self._weight_coming -= part.weight
            try:
                body = await self._body(part)
            except (ValueError, TypeError, RecursionError):
                self._lost(part, UNREADABLE)
            else:
                self._put(PutDown(part, self._letter_of(part), body))
            await turn.end()

    async def _body(self, part: FailedPart) -> bytes:
        """Return what a letter has in it. Raises what cannot be written as JSON does."""
        if part.about is not None:
            is_json = part.payload is None
            payload = encode(part.messages) if part.payload is None else part.payload
            return packed(payload, part.about, part.at, is_json=is_json)
        return entry_of_batch(part.messages) or await entry_of_large(part.messages, self._clock)

    def _put(self, put: PutDown) -> None:
        if put.part.place.stage != "output":
            self._append(put, drops=True)
        elif self._waiting or self._append(put, drops=False) is None:
            self._wait(put)

    def _letter_of(self, part: FailedPart) -> Letter:
        received_at = None if part.about is None else part.at / 1e6
        return self._letter(
            part.place,
            part.message,
            part.failure,
            part.detail,
            part.count,
            received_at=received_at,
        )

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
        stage: Any = letter.stage  # "process" is none of failures, and is told apart all the same
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

    @property
    def can_keep(self) -> bool:
        """Whether the disk takes letters now."""
        return self._storage.is_open

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
        self._is_over = comes_again
        waiting, self._waiting = self._waiting, deque()
        self._after.clear()  # nobody may take for written what is not
        return sum(map(self._give_up, waiting))

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

    def _append(self, put: PutDown, *, drops: bool) -> Group | None:
        """Begin to put a letter down; return what it is committed with, None: it cannot be now."""
        records = self._storage.records
        try:
            if records is None:
                raise StoreFailed("the store is closed")
            group = records.append(put.letter, put.body, self._max_bytes, drops_oldest=drops)
        except StoreFailed as cause:
            if drops or not self._could_fit(put):
                self._lost(put.part, str(cause))
            elif not self._waiting:
                self._warn(
                    f"output {put.part.place.at} waits for room for its dead letters: {cause}"
                )
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
        self._written.set()
        if group.cause is None:
            self._count(put.letter)
            self._ended(put.part.number)
        elif drops:
            self._lost(put.part, str(group.cause))
        else:
            self._wait(put)

    def _lost(self, part: FailedPart, why: str) -> None:
        self._lose(part, why)
        self._ended(part.number)

    def _lose(self, part: FailedPart, why: str) -> None:
        """Count as lost what is not put down."""
        self._losses.add(part.place.stage, part.place.at, part.reason, part.count)
        self._warn(f"messages lost that could not be put down as dead letters: {why}")

    def _wait(self, put: PutDown) -> None:
        """Have a letter of an output wait for room, behind those that do."""
        if put.part.number not in self._pending:
            return  # it did not fit, and is lost
        if self._is_over is not None:
            self._give_up(put)
            return
        self._waiting.append(put)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.ensure_future(self._try_again())

    def _give_up(self, put: PutDown) -> int:
        """Count as lost what there is no time left for, unless it comes again; return how much that is."""
        self._ended(put.part.number)
        if self._is_over:
            return 0
        self._losses.add(put.part.place.stage, put.part.place.at, "stopped", put.part.count)
        return put.part.count

    async def _try_again(self) -> None:
        """Put down what waits, in order, as soon as there is room."""
        while self._waiting:
            await self._clock.sleep(ROOM_SECONDS)
            while self._waiting:
                first = self._waiting[0]
                if self._append(first, drops=False) is None and self._is_pending(first):
                    break
                self._waiting.popleft()

    def _is_pending(self, put: PutDown) -> bool:
        return put.part.number in self._pending

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
