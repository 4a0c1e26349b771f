"""Puts parts into the store of the engine that are not uploaded yet, and knows which are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.partskeep import PartsKeep
from headrace.connectors.s3.objectpart import LONGEST_LINE, ObjectPart
from headrace.connectors.s3.partentries import KeptInStore, entry_at_once, entry_of, part_of

CANNOT = "they cannot be kept in the store: "
NO_PLACE = "with --data-dir they would be kept"
DROPPED = "dropped: more waited for it than may be kept (max_bytes of 'queue')"
LATE_SECONDS = 5.0
"""How often is looked for parts that were there when it was looked before, and are put on the disk."""

TellPart = Callable[[ObjectPart], object]


class PartKeeper:
    """Keeps the parts of one output. Where there is no place for them it keeps nothing."""

    def __init__(
        self,
        keep: PartsKeep | None,
        ctx: Context,
        unsent: Collection[ObjectPart],
        *,
        kept: TellPart,
        drop: TellPart | None,
    ) -> None:
        """Take where they are kept, and all that are not uploaded, the oldest first.

        ``kept`` is told of a part that is there and not over by then; ``drop`` gives one up that is, and
        is asked for the oldest where there is no room for what comes.
        """
        self._keep, self._clock, self._unsent = keep, ctx.clock, unsent
        self._kept, self._drop = kept, drop
        self._copying: dict[ObjectPart, asyncio.Task[None]] = {}
        self._storing: set[ObjectPart] = set()
        self._moved = asyncio.Event()
        self._then: Callable[[], object] | None = None
        self._look_out: asyncio.TimerHandle | None = None
        self.why = NO_PLACE
        """Why what was to be kept last is not."""

    @property
    def has_place(self) -> bool:
        """Whether there is a place for parts."""
        return self._keep is not None

    async def open(self) -> tuple[list[ObjectPart], int]:
        """Return what was kept, and how many entries are something else."""
        assert self._keep is not None
        found: list[ObjectPart] = []
        wrong = 0
        for each in await self._keep.open(LONGEST_LINE):
            try:
                found.append(part_of(each, self._keep))
            except ValueError:
                wrong += 1
        return found, wrong

    def keep(self, parts: Iterable[ObjectPart]) -> None:
        """Begin to keep those that are nowhere else, as far as there is room."""
        if self._keep is None:
            return
        for part in parts:
            if part.source is None and not self._is_keeping(part) and self._has_room_for(part):
                self._copying[part] = asyncio.ensure_future(self._copy(part))

    def _is_keeping(self, part: ObjectPart) -> bool:
        return part in self._copying or part in self._storing

    def _has_room_for(self, part: ObjectPart) -> bool:
        """Return whether a part may be kept; the oldest go for it, where that is wanted."""
        assert self._keep is not None
        assert part.content is not None
        size = LONGEST_LINE + len(part.content.body) + len(part.content.beside)
        while not self._keep.has_room_for(size):
            self.why = f"{CANNOT}{self._keep.why or 'it is full (max_bytes)'}"
            oldest = next(filter(self._may_go, self._unsent), None)
            if self._drop is None or self._keep.why or oldest is None:
                return False
            self._drop(oldest)
        return True

    @staticmethod
    def _may_go(part: ObjectPart) -> bool:
        source = part.source
        return source is not None and not (source.is_old or part.is_on_its_way)

    def watch(self) -> None:
        """Have what is not uploaded for long be kept."""
        if self._keep is not None and self._look_out is None:
            self._look_out = self._clock.call_later(LATE_SECONDS, self._look_for_late)

    def _look_for_late(self) -> None:
        self._look_out = None
        waiting = [part for part in self._unsent if part.source is None]
        self.keep([part for part in waiting if part.is_late])
        for part in waiting:
            part.is_late = True
        if waiting:
            self.watch()

    def keep_now(self, parts: Iterable[ObjectPart]) -> None:
        """Begin to keep those that are nowhere else, and wait for nothing: whoever calls may be over.

        It is the end: nothing is looked for any more.
        """
        if self._look_out is not None:
            self._look_out.cancel()
        for task in self._copying.values():
            task.cancel()
        self._copying.clear()
        if self._keep is None:
            return
        for part in parts:
            if part.source is None and part not in self._storing:
                self._put(part, entry_at_once(part))

    def then(self, action: Callable[[], object]) -> None:
        """Do something once nothing is on its way any more."""
        self._then = action
        self._look()

    async def ended(self) -> None:
        """Wait until nothing is on its way any more."""
        while self._copying or self._storing:
            self._moved.clear()
            await self._moved.wait()

    async def _copy(self, part: ObjectPart) -> None:
        if part.compressing is not None:
            await asyncio.wait([part.compressing])
        entry = None
        if part.content is not None:  # else it was uploaded meanwhile
            entry = await entry_of(part, self._clock)
        del self._copying[part]
        if part.is_over or entry is None:
            self._look()
        else:
            self._put(part, entry)

    def _put(self, part: ObjectPart, entry: bytes) -> None:
        assert self._keep is not None
        self._storing.add(part)
        self._keep.put(entry, partial(self._told, part, len(entry)))

    def _told(self, part: ObjectPart, size: int, number: int | None, why: str) -> None:
        assert self._keep is not None
        self._storing.discard(part)
        if number is None:
            self.why = f"{CANNOT}{why}"
        elif part.is_over:
            self._keep.let_go(number)
        else:
            part.source = KeptInStore(self._keep, number, size)
            self._kept(part)
        self._look()

    def _look(self) -> None:
        self._moved.set()
        if self._then is not None and not (self._copying or self._storing):
            then, self._then = self._then, None
            then()
