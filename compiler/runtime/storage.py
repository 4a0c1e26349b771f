"""The store of one engine: opened when something that is built names it, and lent to what runs.

A run borrows a queue by its pipeline and target, and gives it back. What is left in it outlives the run:
the next one under the same names goes on with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.compiler.buckets import Bounds, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.durable import nowhere
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import STORE
from headrace.compiler.errors import UnknownStored
from headrace.compiler.runtime.borrowed import (
    Borrowed,
    BorrowedJournal,
    BorrowedQueue,
    Q,
    QueueName,
)
from headrace.compiler.runtime.keptbuckets import KeptBuckets
from headrace.compiler.runtime.monitoring.namedevents import StoreEvent
from headrace.compiler.runtime.monitoring.storedfigures import StoreFigures
from headrace.compiler.runtime.storedlisting import LISTED_SECONDS, StoredListing
from headrace.compiler.store.storeerrors import StoreFailed, StoreRefused
from headrace.compiler.text.diagnostics import Diagnostic, Fault

if TYPE_CHECKING:
    from headrace.compiler.config.program import Program
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import DroppedLetters
    from headrace.compiler.store.memorydisk import MemoryDisk
    from headrace.compiler.store.openstore import Store
    from headrace.compiler.store.shelf import Shelf

log = logging.getLogger("headrace.store")

FOLDER = (STORE, "0")
"""Below the directory of all files."""

LEFT_UNNAMED = (
    "%s holds what an earlier run has kept, or another server keeps, and no config here names it: nothing"
    " of it is read, shown or deleted. 'headrace store show' tells of it; with 'dead_letters', 'durable' or"
    " 'queue' in a pipeline GET /api/stored and GET /api/dead-letters do"
)
HearDropped = Callable[["DroppedLetters"], object]
"""Takes which dead letters made room for later ones."""


def _keeps(config: PipelineConfig) -> bool:
    """Return whether anything of a pipeline is kept."""
    return (
        config.dead_letters is not None
        or any(each.is_durable for each in config.inputs)
        or any(each.is_queued for each in config.outputs)
    )


def _may_leave(config: PipelineConfig) -> bool:
    """Return whether anything of a pipeline is kept where there is a place for it."""
    return any(each.leaves_parts for each in config.outputs)


class Storage:
    """What is kept on the disk for the pipelines of one engine."""

    def __init__(
        self,
        clock: Clock,
        data_dir: Path | None,
        settings: StoreSettings,
        *,
        is_real: bool = True,
        hear: Callable[[StoreEvent], object] = lambda _: None,
        disk: Callable[[], MemoryDisk | None] = lambda: None,
    ) -> None:
        """Take the directory of all files, None: there is none.

        What is not ``is_real`` is in memory, on what ``disk`` returns if it is to outlive this. ``hear`` is
        told of each change of the state of the store, and of damage.
        """
        self._clock, self._settings, self._is_real, self._disk = clock, settings, is_real, disk
        self._hear = hear
        self._folder = None if data_dir is None else data_dir.joinpath(*FOLDER)
        self._left_by_others = self._folder if is_real else None
        """Where something may be of which it was not told yet."""
        self._store: Store | None = None
        self.records: Records | None = None
        """The dead letters; None: no store is open."""
        self.dropped_letters = 0
        """How many dead letters have gone since it was opened, to make room for later ones."""
        self._buckets = KeptBuckets(clock)
        self._hearing: dict[str, HearDropped] = {}
        """By pipeline: who hears that dead letters were dropped."""
        self.refusal: str | None = None
        """Why it could not be opened, if that was tried."""
        self._opening = asyncio.Lock()
        self._lent: dict[QueueName, BorrowedQueue] = {}
        self._expecting: dict[QueueName, list[object]] = {}
        """Who has a journal, or is going to: a run that is built for another one's place."""
        self._listing = StoredListing(self._lent, self._buckets)
        self._is_closed = False

    async def prepare(
        self, configs: Iterable[PipelineConfig], buckets: Iterable[Bounds] = ()
    ) -> None:
        """Open the store, if one of these names it: building opens nothing."""
        if self._store is not None:
            return
        configs = [*configs]
        names_it = any(each.is_durable for each in buckets) or any(map(_keeps, configs))
        if not names_it and not (self.has_folder and any(map(_may_leave, configs))):
            self._tell_what_is_left()
            return
        async with self._opening:
            if self._store is None and not self._is_closed and self._may_keep:
                await self._open()

    async def opened(self) -> Store:
        """Return the store, which is opened if it is not: settings name it.

        Raises:
            StoreRefused: it cannot be.
        """
        async with self._opening:
            if self._store is None and not self._is_closed and self._may_keep:
                await self._open()
        if self._store is None:
            raise StoreRefused(self.refusal or "nothing can be kept without --data-dir")
        return self._store

    def _tell_what_is_left(self) -> None:
        """Tell once that an earlier run has left something which no config names: nobody looks into it."""
        folder, self._left_by_others = self._left_by_others, None
        if folder is None or not folder.is_dir():
            return
        from headrace.compiler.store.leftovers import holds_something

        if holds_something(folder):
            log.warning(LEFT_UNNAMED, folder)

    async def keep(self, buckets: Buckets) -> None:
        """Have exactly the durable ones of some buckets be kept: filled with what is stored of them."""
        if self._store is not None:
            await self._buckets.become(self._store, buckets)
            self.changed()

    @property
    def has_folder(self) -> bool:
        """Whether there is a directory for it."""
        return self._folder is not None and self._is_real

    @property
    def _may_keep(self) -> bool:
        return self._folder is not None or not self._is_real

    def fault(self, option: str) -> Fault | None:
        """Return why nothing can be kept here that an ``option`` wants to be; None: it can."""
        if not self._may_keep:
            return nowhere(option)
        if self.refusal is None:
            return None
        return Fault("turned-away", self.refusal, path=(option,), on_key=True)

    def unkept(self, program: Program) -> Iterator[Diagnostic]:
        """Yield why buckets of a program cannot be kept that want to be."""
        if (fault := self.fault("durable")) is not None:
            yield from program.of_durable(fault)

    async def _open(self) -> None:
        from headrace.compiler.store.openstore import Store
        from headrace.compiler.store.storecondition import TAKES_AGAIN, StoreNews

        def hear(news: StoreNews, why: str) -> None:
            self._hear(StoreEvent(news, why, self._clock.millis()))

        def tell(text: str) -> None:
            log.log(logging.INFO if text == TAKES_AGAIN else logging.ERROR, "%s", text)

        settings, self.refusal = self._settings, None
        try:
            self._store = await Store.open(
                self._clock,
                self._folder if self._is_real else None,
                sync="process" if settings.sync == "process" else "power",
                keep_free_bytes=settings.keep_free_bytes,
                tell=tell,
                hear=hear,
                disk=self._disk(),
            )
        except StoreRefused as cause:
            self.refusal = str(cause)
        else:
            from headrace.compiler.store.letterrecords import Records

            self.records = Records(self._store, self._letters_dropped)

    @property
    def is_open(self) -> bool:
        """Whether the store takes something now."""
        return self._store is not None and self._store.condition.state == "open"

    def hear_of_letters(self, pipeline: str, hear: HearDropped) -> None:
        """Have somebody, and nobody else, hear of dead letters of a pipeline that go to make room."""
        self._hearing[pipeline] = hear

    def hear_no_more(self, pipeline: str, hear: HearDropped) -> None:
        """Have somebody hear of them no longer, if nobody else does by now."""
        if self._hearing.get(pipeline) == hear:
            del self._hearing[pipeline]

    def _letters_dropped(self, dropped: DroppedLetters) -> None:
        self.dropped_letters += dropped.letters
        if (hear := self._hearing.get(dropped.pipeline)) is not None:
            hear(dropped)

    def expect(self, name: QueueName, owner: object) -> None:
        """Note that somebody is going to borrow a journal."""
        self._expecting.setdefault(name, []).append(owner)

    def expect_no_more(self, name: QueueName, owner: object) -> None:
        """Note that somebody has done with a journal."""
        expecting = self._expecting.get(name, [])
        expecting[:] = [each for each in expecting if each is not owner]
        if not expecting:
            self._expecting.pop(name, None)

    def is_expected(self, name: QueueName, owner: object) -> bool:
        """Return whether somebody else is going to have a journal."""
        return any(each is not owner for each in self._expecting.get(name, ()))

    async def has_entries(self, name: QueueName) -> bool:
        """Return whether something is in a queue, which is not made for that.

        Raises:
            StoreFailed: that cannot be read now.
        """
        if self._store is None:
            raise StoreFailed(self.refusal or "the store is closed")
        return await self._store.queues.has_entries(*name)

    async def borrow(self, name: QueueName, max_bytes: int) -> BorrowedJournal:
        """Return a queue. Whoever has it yet gives it back before.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        from headrace.compiler.store.journal import Journal

        borrowed = self._lent[name] = await self._lend(Journal, name, max_bytes)
        return borrowed

    async def borrow_shelf(self, name: QueueName, max_bytes: int) -> Borrowed[Shelf]:
        """Return a queue of which entries are read by their numbers; as `borrow`."""
        from headrace.compiler.store.shelf import Shelf

        borrowed = self._lent[name] = await self._lend(Shelf, name, max_bytes)
        return borrowed

    async def _lend(self, form: type[Q], name: QueueName, max_bytes: int) -> Borrowed[Q]:
        if (other := self._lent.get(name)) is not None:
            await other.give_back(ends=False)
        if self._store is None:
            raise StoreFailed(self.refusal or "the store is closed")
        queue = await form.open(self._store, *name, max_bytes)
        self._listing.changed()
        return Borrowed(self, name, queue)

    async def end(self, name: QueueName) -> None:
        """Leave what is in a journal to nobody, unless somebody has it."""
        from headrace.compiler.store.journal import Journal

        if self._store is None or name in self._lent or name in self._expecting:
            return
        with suppress(StoreFailed):
            journal = await Journal.open(self._store, *name, 0)
            await journal.end()
            self.changed()

    async def end_left_over(self, pipeline: str) -> None:
        """Leave to nobody what is left over of a pipeline that is deleted, of what it kept before.

        A disk that fails or hangs keeps nobody waiting: then that stays as it is.
        """
        figures = await self.figures()
        with suppress(TimeoutError):
            async with self._clock.timeout(LISTED_SECONDS):
                for each in () if figures is None else figures.parts:
                    if each.pipeline == pipeline and each.left_over and not each.ended:
                        await self.end((pipeline, each.target, each.part))

    def returned(self, journal: Borrowed[Q]) -> bool:
        """Forget who has a journal; return whether that was known."""
        is_lent = self._lent.get(journal.name) is journal
        if is_lent:
            del self._lent[journal.name]
        return is_lent

    def changed(self) -> None:
        """Have all there is looked through again: somebody has given something back."""
        self._listing.changed()

    async def figures(self) -> StoreFigures | None:
        """Return what is kept, None: no store is open."""
        return None if self._store is None else await self._listing.figures(self._store)

    async def discard(self, id: int) -> None:
        """Forget a part of what is kept.

        Raises:
            UnknownStored: there is none with that number.
            StoredInUse: a pipeline has it.
            StoreFailed: it cannot be written.
        """
        await self._listing.discard(self._known(id), id)

    async def discard_aside(self, id: int) -> None:
        """Forget what was set aside of a part of what is kept, whoever has that.

        Raises:
            UnknownStored: there is none with that number, or nothing of it was set aside.
            StoreFailed: it cannot be written.
        """
        await self._listing.discard_aside(self._known(id), id)

    def _known(self, id: int) -> Store:
        if self._store is None:
            raise UnknownStored(id)
        return self._store

    async def close(self) -> None:
        """Write what is left, and close."""
        self._is_closed = True
        for each in [*self._lent.values()]:
            await each.give_back(ends=False)
        self._buckets.close()
        store, self._store, self.records = self._store, None, None
        if store is not None:
            await store.close()
