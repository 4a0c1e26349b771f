"""Stand-ins for the outside: inputs that have messages at hand, outputs that count them.

They are components like any other, so what runs between them is what runs in production.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial
from itertools import cycle, islice, repeat
from typing import Any, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.families import Input, Output
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival, AwaitingSink, InlineSink, Rest, Sink, Source
from headrace.compiler.jsontext import encode_lines

MOST_WAITING = 64 * 1024


class Supply(Source):
    """Hands out what it was given, as fast as it is read, each time it is asked to."""

    is_raw: ClassVar[bool] = False

    def __init__(self) -> None:
        self._arrivals: list[Arrival] = []
        self._wanted = 0
        self._asked = asyncio.Event()

    def give(self, batches: Sequence[Any]) -> None:
        """Take what is handed out over and over: as many batches as a read gives at once."""
        self._arrivals = [(batch, None) for batch in batches]

    def hand_out(self, batches: int) -> None:
        """Hand out so many batches more."""
        self._wanted += batches
        self._asked.set()

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield chunk after chunk while more is wanted."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            wanted, self._wanted = self._wanted, 0
            for chunk in self._chunks(wanted):
                yield chunk

    def _chunks(self, batches: int) -> Iterator[Sequence[Arrival]]:
        """Yield all there is, as often as it takes, and then the rest."""
        rounds, rest = divmod(batches, len(self._arrivals))
        yield from repeat(self._arrivals, rounds)
        if rest:
            yield self._arrivals[:rest]


class RawSupply(Supply):
    """Hands out payloads that are still to be decoded: those of one batch make a chunk."""

    is_raw: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._payloads: list[list[Arrival]] = []

    def give(self, batches: Sequence[Sequence[bytes]]) -> None:
        """Take what is handed out over and over: the payloads of batches of one size."""
        self._payloads = [[(payload, None) for payload in batch] for batch in batches]
        self.max_batch = len(batches[0])

    def _chunks(self, batches: int) -> Iterator[Sequence[Arrival]]:
        """Yield one batch after the other."""
        return islice(cycle(self._payloads), batches)


class Confirmed(Supply):
    """A supply that is told when outputs are through with what it handed out."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way = 0
        self._through = asyncio.Event()

    def hand_out(self, batches: int) -> None:
        """Hand out so many batches more, and look out for them."""
        self._under_way += batches
        self._through.clear()
        super().hand_out(batches)

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Count a batch that is through."""
        self._under_way -= 1
        if not self._under_way:
            self._through.set()

    async def through(self) -> None:
        """Wait until all of it is."""
        await self._through.wait()


class Counting(InlineSink):
    """Counts the batches that reach it, and tells when it has seen as many as are expected."""

    def __init__(self) -> None:
        self.batches = 0
        self._last = -1
        self._seen = asyncio.Event()

    def expect(self, batches: int) -> None:
        """Look out for so many more."""
        self._last = self.batches + batches
        self._seen.clear()

    async def expected(self) -> None:
        """Wait until they are here."""
        await self._seen.wait()

    def write(self, batch: Batch) -> None:
        """Count one."""
        self.batches += 1
        if self.batches == self._last:
            self._seen.set()


class Writing(Counting):
    """Writes lines into memory, which is let go of in large pieces."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = bytearray()

    def write(self, batch: Batch) -> None:
        """Encode one batch, and count it."""
        self._waiting += encode_lines(batch)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.clear()
        super().write(batch)


class Gated(AwaitingSink):
    """Has a sink write each batch in the pass while its gate is open; else it waits for that."""

    def __init__(self, sink: InlineSink) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self._sink = sink

    def begin(self, batch: Batch) -> Rest | None:
        """Write one, if it may be."""
        return self._sink.write(batch) if self.gate.is_set() else partial(self.write, batch)

    async def write(self, batch: Batch) -> None:
        """Write one as soon as it may be."""
        await self.gate.wait()
        self._sink.write(batch)


class CountingMessages(InlineSink):
    """Counts the messages that reach it, and tells when it has seen as many as are expected."""

    def __init__(self) -> None:
        self._missing = 0
        self._seen = asyncio.Event()

    def expect(self, messages: int) -> None:
        """Look out for so many more."""
        self._missing += messages
        self._seen.clear()

    async def expected(self) -> None:
        """Wait until they are here."""
        await self._seen.wait()

    def write(self, batch: Batch) -> None:
        """Count those of one batch."""
        self._missing -= len(batch)
        if self._missing == 0:
            self._seen.set()


supplies: dict[str, Supply] = {}
"""What was built, by pipeline: who measures has to get hold of both ends."""
sinks: dict[str, Counting] = {}
gates: dict[str, asyncio.Event] = {}
message_sinks: dict[str, CountingMessages] = {}


class SupplyInput(Input, kind="supply"):
    """Has batches at hand."""

    def source(self, ctx: Context) -> Source:
        """Build the supply."""
        return supplies.setdefault(ctx.pipeline, Supply())


class RawSupplyInput(Input, kind="raw_supply"):
    """Has payloads at hand."""

    def source(self, ctx: Context) -> Source:
        """Build the supply."""
        return supplies.setdefault(ctx.pipeline, RawSupply())


class ConfirmedSupplyInput(Input, kind="confirmed_supply"):
    """Has batches at hand, and is told when they are through."""

    acknowledges = True

    def source(self, ctx: Context) -> Source:
        """Build the supply."""
        return supplies.setdefault(ctx.pipeline, Confirmed())


class CountingMessagesOutput(Output, kind="counting_messages"):
    """Counts messages."""

    def open(self, ctx: Context) -> Sink:
        """Build the counter."""
        return message_sinks.setdefault(ctx.pipeline, CountingMessages())


class CountingOutput(Output, kind="counting"):
    """Counts batches."""

    def open(self, ctx: Context) -> Sink:
        """Build the counter."""
        return sinks.setdefault(ctx.pipeline, Counting())


class WritingOutput(Output, kind="writing"):
    """Encodes batches."""

    def open(self, ctx: Context) -> Sink:
        """Build the writer."""
        return sinks.setdefault(ctx.pipeline, Writing())


class GatedOutput(QueuedOutput, kind="gated"):
    """Counts batches while it may, and can have a queue."""

    sink: ClassVar[type[Counting]] = Counting

    def kept_as(self) -> str:
        """Return its kind."""
        return self.kind

    def open(self, ctx: Context) -> Sink:
        """Build the counter."""
        made = Gated(sinks.setdefault(ctx.pipeline, self.sink()))
        gates[ctx.pipeline] = made.gate
        return made


class GatedWritingOutput(GatedOutput, kind="gated_writing"):
    """Encodes batches while it may, and can have a queue."""

    sink = Writing


def catalogue() -> Catalogue:
    """Return the real components and the stand-ins."""
    own = [SupplyInput, RawSupplyInput, ConfirmedSupplyInput]
    outputs = [
        CountingOutput,
        CountingMessagesOutput,
        GatedOutput,
        GatedWritingOutput,
        WritingOutput,
    ]
    return Catalogue([*scan("headrace.operators", "headrace.connectors"), *own, *outputs])
