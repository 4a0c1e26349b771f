"""Messages become parts of objects, one part after the other, and parts are handed to their uploads."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Iterable
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.partskeep import PartsKeep
from headrace.compiler.delivery import Batch, Debt, SharedDebt, is_large
from headrace.compiler.edges import GatheringSink, QueueFill, Rest
from headrace.compiler.jsontext import encode_lines
from headrace.compiler.largejson import encode_large_lines
from headrace.connectors.disk.packing import PACKINGS, packed_name
from headrace.connectors.disk.partformats import JSON_FORMATS, PartFormat
from headrace.connectors.disk.parts import part_name
from headrace.connectors.s3.objectkeys import PartNumbers, folder_of, partition_of
from headrace.connectors.s3.objectpart import OWED_BYTES, Content, ObjectPart
from headrace.connectors.s3.objectstore import S3Store
from headrace.connectors.s3.storelater import StoreLater
from headrace.connectors.s3.unsentfolder import UnsentFolder
from headrace.connectors.s3.uploads import UploadQueue

if TYPE_CHECKING:
    from headrace.connectors.s3 import S3Output

PATIENCE_SECONDS = 2.0
"""How long a batch waits for room before that is told."""
TURN_BYTES = 128 * 1024
"""How much goes into a part before uploads have their turns: about as much as they send in them."""
UPLOAD_TURNS = 2
"""Of the loop: what a connection takes to send what it has, and to get more."""


class OpenPart:
    """A part that is being filled."""

    def __init__(self, key: str, form: PartFormat, packing: str) -> None:
        """Take the key that it will have, and how it will be compressed: ``none``, or in which way."""
        self._key, self._form, self._packing = key, form, packing
        self._body, self._beside = BytesIO(), BytesIO()
        self.messages = self.owed_messages = 0
        self._owed: list[Debt] = []

    @property
    def size(self) -> int:
        """What it takes in memory."""
        return self._body.tell() + self._beside.tell() + OWED_BYTES * len(self._owed)

    def append(self, rows: bytes, messages: int, custody: SharedDebt | None, beside: bytes) -> None:
        """Add a batch, which is encoded already, and what is owed for it.

        ``beside``: its messages as lines of JSON, where they may be wanted and are not what is encoded.
        """
        self._beside.write(beside)
        self._body.write(self._form.between if self.messages else self._form.begin)
        self._body.write(rows)
        self.messages += messages
        if custody is not None:
            custody.parts += 1
            self._owed.append(custody)
            self.owed_messages += messages

    def closed(self) -> ObjectPart:
        """Return it as it is to be uploaded."""
        self._body.write(self._form.end)
        packing = PACKINGS.get(self._packing)
        body = self._body.getvalue()
        return ObjectPart(
            key=self._key,
            media_type=(packing or self._form).media_type,
            messages=self.messages,
            length=len(body),
            content=Content(body, self._packing, self._beside.getvalue()),
            owed=self._owed,
            owed_messages=self.owed_messages,
        )


class S3Sink(GatheringSink):
    """Fills one part after the other, and hands them to the upload queue.

    A batch is encoded once, in the pass; it waits only while too much is held. What is owed for it is
    settled when its part is uploaded or on the disk.
    """

    is_confirming = False

    def __init__(
        self,
        config: S3Output,
        ctx: Context,
        store: S3Store | StoreLater,
        folder: UnsentFolder | None,
        keep: PartsKeep | None,
        numbers: PartNumbers,
    ) -> None:
        """Take where parts go, where they were and are kept else, and their numbers."""
        self._config, self._ctx, self._store = config, ctx, store
        self._form = config.form(ctx)
        self._bound = config.max_buffered_bytes
        self._numbers = numbers
        self._uploads = UploadQueue(
            store, folder, keep, numbers, ctx, config.queueing, config.retrying()
        )
        self._keeps_messages = ctx.most_refused is not None and config.format not in JSON_FORMATS
        """Whether messages stand beside what they are written as, of which none could be made again."""
        self._part: OpenPart | None = None
        self._custody: SharedDebt | None = None
        # Whoever can wait no longer for what is acknowledged has the part closed.
        ctx.holds(self._owed_messages, self._close)
        self._timer: TimerHandle | None = None
        self._filled = 0

    async def start(self) -> None:
        """Ask for the bucket; send what an earlier run could not."""
        await self._store.open(folder_of(self._config.prefix, ""))
        await self._uploads.add_kept()

    def owe(self, custody: SharedDebt | None) -> None:
        """Owe this for what is added from now on."""
        self._custody = custody

    def put_down(self) -> Iterable[Batch]:
        return self._uploads.put_down()

    def _owed_messages(self) -> int:
        return 0 if self._part is None else self._part.owed_messages

    def begin(self, batch: Batch) -> Rest | None:
        """Add the batch to the part at once, unless too much is held."""
        if not batch:
            return None
        if is_large(batch):
            return partial(self.write, batch)
        rows = self._form.rows(batch)
        return self._take(rows, len(batch), encode_lines(batch) if self._keeps_messages else b"")

    async def write(self, batch: Batch) -> None:
        """Add the batch to the part as soon as there is room."""
        if not batch:
            return
        form, clock, beside = self._form, self._ctx.clock, b""
        if is_large(batch):
            rows = await form.large_rows(batch, clock)
            if self._keeps_messages:
                beside = await encode_large_lines(batch, clock)
        else:
            rows = form.rows(batch)
            if self._keeps_messages:
                beside = encode_lines(batch)
        if (rest := self._take(rows, len(batch), beside)) is not None:
            await rest()

    def _take(self, rows: bytes, messages: int, beside: bytes) -> Rest | None:
        """Add rows at once; return what does so later, or what gives uploads their turns."""
        size = len(rows) + len(beside)
        if not self._has_room(size):
            return partial(self._add_later, rows, messages, beside)
        self._add(rows, messages, beside)
        # Uploads have their turns now and then: a part is filled faster than one is sent.
        self._filled += size
        if self._filled < TURN_BYTES or not self._uploads.unsent:
            return None
        self._filled = 0
        return give_way

    def queue(self) -> QueueFill:
        """Return how much is held."""
        return QueueFill("bytes", self._held, self._bound)

    async def finish(self) -> None:
        """Close the part, and have everything uploaded or kept in the time there is."""
        self._close()
        try:
            await self._uploads.finish()
        finally:
            await self._uploads.stop()
            await self._store.close()

    def _has_room(self, size: int) -> bool:
        """Return whether so much may be held as well; a batch that is too large for that, alone."""
        return self._held == 0 or self._held + size <= self._bound

    @property
    def _held(self) -> int:
        return self._uploads.held + (0 if self._part is None else self._part.size)

    async def _add_later(self, rows: bytes, messages: int, beside: bytes) -> None:
        """Wait for room, and say so if it takes long."""
        clock, is_told = self._ctx.clock, False

        def tell() -> None:
            nonlocal is_told
            is_told = True
            self._ctx.warn(f"{self._bound:,} bytes wait to be uploaded, so the pipeline waits")

        telling = clock.call_later(PATIENCE_SECONDS, tell)
        try:
            while not self._has_room(len(rows) + len(beside)):
                if self._uploads.work is None:
                    self._close()
                self._uploads.make_room()
                await self._uploads.news.wait()
        finally:
            telling.cancel()
        if is_told:
            self._ctx.note("there is room for parts again")
        self._add(rows, messages, beside)

    def _add(self, rows: bytes, messages: int, beside: bytes) -> None:
        """Add rows to the part, and close it when it is full."""
        part = self._part or self._open()
        part.append(rows, messages, self._custody, beside)
        if self._config.rotate.is_full(part.messages):
            self._close()
        elif 2 * part.size > self._bound:
            self._ctx.warn_once(
                f"parts are closed before 'rotate' says so: 'max_buffered_bytes' is {self._bound:,},"
                " and one of them may hold half of that"
            )
            self._close()

    def _open(self) -> OpenPart:
        """Open the next part; its time runs from now."""
        config, opened = self._config, self._ctx.clock.now()
        packing = PACKINGS.get(config.compression)
        name = part_name(opened, 0, self._form.extension)
        folder = folder_of(config.prefix, partition_of(config.partition, opened))
        self._part = OpenPart(
            self._numbers.numbered(folder + (packed_name(name, packing) if packing else name)),
            self._form,
            config.compression,
        )
        self._timer = config.rotate.timer(self._ctx.clock, self._close)
        return self._part

    def _close(self) -> None:
        """Have the part uploaded, if one is open."""
        part, self._part = self._part, None
        if self._timer is not None:
            self._timer.cancel()
        if part is not None:
            self._uploads.add(part.closed())


async def give_way() -> None:
    """Wait while uploads have their turns."""
    for _ in range(UPLOAD_TURNS):
        await asyncio.sleep(0)
