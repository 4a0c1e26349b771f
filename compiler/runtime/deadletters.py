"""What one run of a pipeline cannot do is taken, to be put down as dead letters.

Nobody is told that something was taken or written before what failed of it is on the disk
(`LetterKeeping`). Of what an output refuses nothing is given up: it waits for room, and with it the batch
it came from. Of inputs and transforms the oldest letters go for newer ones, as whoever sends must not be
able to stop a pipeline; what the disk does not take then is lost, and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.compiler.clock import EPOCH, MICROSECOND, Clock
from headrace.compiler.component.deadletteroptions import DeadLetterOptions
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import FailureClass, worded
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import WritingTurn
from headrace.compiler.runtime.failedparts import FailedPart, FailedPlace, PutDown, alike
from headrace.compiler.runtime.letterkeeping import LetterKeeping
from headrace.compiler.runtime.monitoring.failures import About, Repeats, cut
from headrace.compiler.runtime.monitoring.losses import Losses, LostData
from headrace.compiler.runtime.monitoring.namedevents import DeadLettersEvent
from headrace.compiler.runtime.monitoring.signatures import ComponentKey
from headrace.compiler.runtime.queuedbatch import entry_of_batch, entry_of_large
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedarrival import packed
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.letterrows import DroppedLetters, Letter

MOST_COMING = 500_000
"""Messages of inputs and transforms that wait for that, roughly, a long payload being several. What comes
faster for longer than the disk takes it is lost, and counted."""
MOST_TOGETHER = 1_000
"""Messages of an input that become one letter, if they failed alike one behind the other."""
TOO_FAST = "they come faster than the disk takes them"
TOLD_PAUSES = (1.0, 1.0)
"""Seconds between two events about what fails alike."""
DETAIL_BYTES = 8 * 1024
"""Of what was said of a letter, at most."""
UNREADABLE = "it cannot be written as JSON"


NoteFailure = Callable[[str, FailureClass], None]
"""Is told how something failed: what was said, and the class."""


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
        self._max_bytes, self._losses = options.max_bytes, losses
        self.most_in_a_row = options.most_in_a_row
        """How many messages an output may refuse in a row until it is not the messages."""
        self.keeping = LetterKeeping(options.max_bytes, storage, clock, losses, warn, self._count)
        """Knows what is not on the disk yet."""
        self._tell, self._told = tell, Repeats(clock, TOLD_PAUSES, self._tell_of)
        self._config: str | None = None
        self._targets: Mapping[FailedPlace, str] = {}
        self.put_down = Counter[str]()
        """How many letters this run has put on the disk, by stage."""
        self._looked_for: dict[int, tuple[Batch, NoteFailure]] = {}
        """By their ids as objects: the batches that are no new letters where they fail, and who is told."""
        self._coming: deque[FailedPart] = deque()
        """What is to be put down, in order."""
        self._weight_coming = 0
        """Of what inputs and transforms have in there, as `FailedPart.weight`."""
        self._putting: asyncio.Task[None] | None = None

    def begin(self, config: str, targets: Mapping[FailedPlace, str]) -> None:
        """Hear of letters that go to make room: the run has begun.

        ``config`` is the digest of its config; ``targets`` are what tells its components from others.
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
            for detail, messages in alike(lost):
                self._come(
                    FailedPart(
                        0,
                        place,
                        message,
                        failure,
                        detail,
                        lost.reason,
                        at,
                        messages,
                        batch=lost.messages,
                    )
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
            FailedPart(0, place, message, failure, None, "error", at, messages, payload, about=told)
        )

    def _come(self, part: FailedPart) -> None:
        """Have something be put down, behind what came before."""
        if part.place.stage != "output":
            if self._weight_coming >= MOST_COMING:
                self.keeping.lose(part, TOO_FAST)
                return
            self._weight_coming += part.weight
        self.keeping.expect(part)
        self._coming.append(part)
        if self._putting is None or self._putting.done():
            self._putting = asyncio.ensure_future(self._put_all())

    async def _put_all(self) -> None:
        """Put down what has come; others have their turn meanwhile."""
        turn = WritingTurn(self._clock)
        while self._coming:
            await self.keeping.until_written()
            part = self._coming.popleft()
            if part.place.stage != "output":
                self._weight_coming -= part.weight
            try:
                put = PutDown(part, self._letter_of(part), await self._body(part))
            except (ValueError, TypeError, RecursionError):
                self.keeping.lost(part, UNREADABLE)
            except (
                Exception
            ) as cause:  # a fault of ours, and what comes behind it does not wait for it
                self.keeping.lost(part, worded(cause))
            else:
                self.keeping.put(put)
            await turn.end()

    async def _body(self, part: FailedPart) -> bytes:
        """Return what a letter has in it. Raises what cannot be written as JSON does."""
        if part.about is not None:
            is_json = part.payload is None
            payload = encode(part.messages) if part.payload is None else part.payload
            return packed(payload, part.about, part.at, is_json=is_json)
        return entry_of_batch(part.messages) or await entry_of_large(part.messages, self._clock)

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

    def close(self) -> None:
        """Hear no more of what goes."""
        self._told.settle()
        self._storage.hear_no_more(self._pipeline, self._dropped)
        self.keeping.close()

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
        text = cut(" ".join(message.split()))
        said = None if detail is None or detail == text else cut(detail, DETAIL_BYTES)
        is_input = place.stage == "input"
        return Letter(
            self._pipeline,
            stage or place.stage,
            None if is_input else place.at,
            place.at if is_input else None,
            self._targets.get(place),
            failure,
            text,
            said,
            now,
            now,
            1,
            failure == "unclear",
            received_at,
            self._config,
            messages,
        )


def _micros(moment: Any) -> int | None:
    """Return a time as it is told of, in microseconds since 1970; None: it is none."""
    if not isinstance(moment, str):
        return None
    return (datetime.fromisoformat(moment) - EPOCH) // MICROSECOND
