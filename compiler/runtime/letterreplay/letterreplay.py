"""One replay: letters go once more through what failed on them, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import worded
from headrace.compiler.runtime.letterbody import arrival_of, batch_in
from headrace.compiler.runtime.letterreplay.letterinhand import LetterInHand
from headrace.compiler.runtime.letterreplay.reentry import (
    ChainReentry,
    InputReentry,
    OutputReentry,
    Reentry,
)
from headrace.compiler.runtime.letterreplay.replayrequest import RATE, ReplayTarget
from headrace.compiler.runtime.monitoring.replayfigures import ReplayState

if TYPE_CHECKING:
    from headrace.compiler.runtime.pipeline import Pipeline
    from headrace.compiler.runtime.world import World
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import Letter

MOST_IN_HAND = 1_000
"""Letters that were sent and have not left, as a buffer holds them: then it has to hand them on."""


def target_of(letter: Letter) -> ReplayTarget:
    """Return where a letter has failed; one that has ended the process, where it was handed out."""
    if letter.component is None:
        return ReplayTarget("input", letter.input_index or 0)
    return ReplayTarget("transform" if letter.stage == "transform" else "output", letter.component)


class LetterReplay:
    """Letters that go once more through one pipeline. What goes through is deleted."""

    def __init__(
        self,
        number: int,
        pipeline: Pipeline,
        world: World,
        records: Records,
        ids: Sequence[int],
        *,
        target: ReplayTarget | None = None,
        rate: float = RATE,
        edited: Batch | None = None,
    ) -> None:
        """Take the letters, oldest first; ``target``: where they go in, None: where they have failed.

        ``rate``: messages a second; ``edited`` goes in the place of what is in the one letter.
        """
        self.number, self.selected = number, len(ids)
        self.done = self.failed = 0
        """How many of the letters are gone; have failed again, or could not be read."""
        self.state: ReplayState = "running"
        self._pipeline, self._world, self._records, self._ids = pipeline, world, records, ids
        self._target, self._rate, self._edited = target, rate, edited
        self._clock = world.clock
        self._ways: dict[ReplayTarget, Reentry] = {}
        self._in_hand: set[LetterInHand] = set()
        self._moved = asyncio.Event()
        self._next = self._clock.monotonic()
        pipeline.ending.append(self.stop)
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Send no more. What was sent and has not left stays a letter, and may be there all the same."""
        if self.state == "running":
            self.state = "stopped"
            self._task.cancel()

    def when_over(self, action: Callable[[], None]) -> None:
        """Do something when it is over, and has given back what it took to go in."""
        self._task.add_done_callback(lambda _: action())

    async def _run(self) -> None:
        try:
            for id in self._ids:
                if len(self._in_hand) >= MOST_IN_HAND:
                    await self._hand_on()
                await self._one(id)
            await self._hand_on()
            await self._records.written()  # whoever lists letters then finds none that is gone
            self.state = "done"
        except asyncio.CancelledError:
            self.state = "stopped"
        except Exception as cause:
            self.state = "failed"
            self._pipeline.warned(f"a replay of dead letters has failed: {worded(cause)}")
        finally:
            for way in self._ways.values():
                await way.close()
            if self.stop in self._pipeline.ending:
                self._pipeline.ending.remove(self.stop)

    async def _hand_on(self) -> None:
        """Have all that was sent leave, also what buffers hold; ways in are made anew after that."""
        for way in self._ways.values():
            way.end()
        while self._in_hand:
            self._moved.clear()
            await self._moved.wait()
        ways, self._ways = self._ways, {}
        for way in ways.values():
            await way.close()

    async def _one(self, id: int) -> None:
        """Send one letter, if it is still there."""
        whole = await self._records.letter(id)
        if whole is None:
            self.selected -= 1
        elif whole.found is None or whole.body is None:
            self.failed += 1
        else:
            await self._send(id, whole.found.letter, whole.body)

    async def _send(self, id: int, letter: Letter, body: bytes) -> None:
        way = self._way(self._target or target_of(letter))
        is_edited = self._edited is not None
        hand = LetterInHand(
            id, letter, self._records, self._clock, self._ended, is_edited=is_edited
        )
        self._in_hand.add(hand)
        arrival = None if is_edited else arrival_of(letter, body)
        if arrival is not None and isinstance(way, InputReentry):
            await self._pause(1)
            hand.sending()
            if (failed := await way.arrive(arrival, hand.through)) is not None:
                hand.failed_again(failed, [])
            hand.sent(1)
            return
        decoding = self._pipeline.parts.decoding
        batch = self._edited if self._edited is not None else await batch_in(letter, body, decoding)
        for some in way.parts(batch):
            await self._pause(len(some))
            hand.sending()
            if (failed := await way.send(some, hand.through)) is not None:
                hand.failed_again(failed, some)
        hand.sent(len(batch))

    def _ended(self, hand: LetterInHand, is_gone: bool) -> None:
        self._in_hand.discard(hand)
        self.done += is_gone
        self.failed += not is_gone
        self._moved.set()

    def _way(self, target: ReplayTarget) -> Reentry:
        """Return where letters go in there; it is made for the first of them."""
        way = self._ways.get(target)
        if way is None:
            stage, at = target
            if stage == "output":
                way = OutputReentry(self._pipeline, at)
            elif stage == "transform":
                way = ChainReentry(self._pipeline, self._world, at)
            else:
                way = InputReentry(self._pipeline, self._world, at)
            self._ways[target] = way
        return way

    async def _pause(self, messages: int) -> None:
        """Wait until so many more messages may be sent."""
        now = self._clock.monotonic()
        self._next = max(self._next, now)
        left, self._next = self._next - now, self._next + messages / self._rate
        await self._clock.sleep(left)
