"""What a format is: it makes messages of a payload, a slice at a time, and says what does not fit."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import HeadraceError
from headrace.compiler.formats.csvoptions import CsvOptions
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import LARGE, DecodedBatch, LargeList

MOST_MESSAGES = 100_000
"""Messages of one payload. 4 MiB of lines of one character would be two million, of 400 MiB."""
MOST_CELLS = 2_000_000
"""Cells of one table that are in messages: eight bytes each of a body of 16 MiB.

A field takes 37 bytes, and a text of its own 50 and more: some 200 MB. 16 MiB of empty cells would be 600.
"""


class FormatMisfit(HeadraceError, ValueError):
    """Something does not fit a format: a line, a row, or a payload as a whole.

    It names no content. ``kind`` is the same without its place and its numbers: one of many is told.
    """

    def __init__(self, text: str, kind: str | None = None, row: int | None = None) -> None:
        super().__init__(text if row is None else f"row {row:,}: {text}")
        self.kind = kind or text


class TooManyInPayload(FormatMisfit):
    """A payload has too many messages, or too many cells: it would take too much memory."""

    def __init__(self, most: int, what: str) -> None:
        super().__init__(f"more than {most:,} {what} in one payload")


LeaveOut = Callable[[FormatMisfit, bytes | None], None]
"""Takes why something is left out, and the part of the payload that it is, where that is known."""


class Intake:
    """The messages that one payload becomes.

    A line that does not fit is refused with the whole payload, unless ``leave_out`` takes it.
    """

    def __init__(self, size: int, leave_out: LeaveOut | None = None) -> None:
        """Take the bytes of the payload: the messages of a large one are let go of in slices."""
        self.batch: Batch = []
        """What has come of it so far."""
        if size >= LARGE:
            self.batch = DecodedBatch(asyncio.get_running_loop())
        self.counts_containers = size >= LARGE
        """Whether it is to be told of lists and objects in messages."""
        self.numbers_rows = leave_out is None
        """Whether somebody wants to know in which row a misfit is."""
        self._leave_out = leave_out
        self._left_out = 0
        self.cells = 0
        """Cells of a table that are in messages."""

    def take(self, messages: Batch, containers: int = 0) -> None:
        """Add some messages, in which there are so many lists and objects beside themselves.

        Raises:
            TooManyInPayload: the payload has too many.
        """
        if not self.batch and self.batch.__class__ is list:
            self.batch = messages
        else:
            self.batch += messages
        if isinstance(self.batch, DecodedBatch):
            self.batch.slices.append(len(messages))
            self.batch.add_containers(len(messages) + containers)
        self._bound()

    def add_containers(self, containers: int) -> None:
        """Count lists and objects in messages that are taken apart from each other."""
        if isinstance(self.batch, DecodedBatch):
            self.batch.add_containers(containers)

    def add_cells(self, cells: int) -> None:
        """Count cells of a table that have become fields of messages.

        Raises:
            TooManyInPayload: the payload has too many.
        """
        self.cells += cells
        if self.cells > MOST_CELLS:
            raise TooManyInPayload(MOST_CELLS, "cells")

    def take_decoded(self, decoded: DecodedBatch) -> None:
        """Add what was decoded in slices of its own, which it leaves to this one."""
        if isinstance(self.batch, DecodedBatch):
            self.batch.built += decoded.built
            decoded.built.clear()
        self.take([*decoded], decoded.containers)

    def misfit(self, cause: FormatMisfit, part: bytes | None) -> None:
        """Leave something out, or raise it."""
        if self._leave_out is None:
            raise cause
        self._left_out += 1
        self._bound()
        self._leave_out(cause, part)

    def _bound(self) -> None:
        if len(self.batch) + self._left_out > MOST_MESSAGES:
            raise TooManyInPayload(MOST_MESSAGES, "messages")


class CountingIntake(Intake):
    """How many messages one payload becomes, none of which is held on to."""

    def __init__(self) -> None:
        super().__init__(0)
        self.messages = 0

    def take(self, messages: Batch, containers: int = 0) -> None:
        """Count some messages."""
        self.messages += len(messages)


class FormatOptions(NamedTuple):
    """What an input says of its format."""

    encoding: str = "utf-8"
    csv: CsvOptions | None = None
    """How a table is read; None: as its defaults say."""
    is_bare: bool = False
    """Whether a text is the message itself, which lies under a field later, as `wrap` has it."""


class PayloadFormat(ABC):
    """How one input makes messages of payloads."""

    known: ClassVar[dict[str, type[PayloadFormat]]] = {}
    """All of them, by their names in a config."""
    word: ClassVar[str]
    """Its name in a config."""
    elsewhere: ClassVar[str] = ""
    """What others call it, words in one text."""
    is_one: ClassVar[bool] = False
    """Whether a payload is one message, whatever it holds."""
    has_encoding: ClassVar[bool] = True
    """Whether its encoding is a choice; else it is UTF-8."""
    is_table: ClassVar[bool] = False
    """Whether `csv` says how it is read."""

    def __init_subclass__(cls, word: str, elsewhere: str = "") -> None:
        cls.word, cls.elsewhere = word, elsewhere
        PayloadFormat.known[word] = cls

    @abstractmethod
    def __init__(self, options: FormatOptions) -> None:
        """Take what the input says of it."""

    @abstractmethod
    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Put the messages of a payload into ``into``; yield wherever others may have their turn.

        Raises:
            FormatMisfit: the payload as a whole does not fit, or a line does not and is not left out.
        """

    def fields(self) -> Iterable[str] | None:
        """Return every field its messages can have; None when it cannot know."""
        return None


def joined(first: Batch, second: Batch) -> Batch:
    """Return the messages of two payloads as one batch; of the first or the second nothing else is made.

    Where one of them is let go of in slices, so is the whole.
    """
    if first.__class__ is list and second.__class__ is not list:
        is_decoded = isinstance(second, DecodedBatch)
        whole: Batch = DecodedBatch(asyncio.get_running_loop()) if is_decoded else LargeList()
        _add(whole, first)
        first = whole
    _add(first, second)
    return first


def _add(batch: Batch, more: Batch) -> None:
    batch += more
    if isinstance(batch, DecodedBatch):
        batch.slices += more.slices if isinstance(more, DecodedBatch) else [len(more)]
    if isinstance(more, DecodedBatch) and isinstance(batch, DecodedBatch):
        batch.built += more.built
        more.slices.clear()
        more.built.clear()


def decoded(
    format: PayloadFormat,
    payload: bytes | bytearray,
    decoding: Decoding,
    leave_out: LeaveOut | None = None,
) -> Batch:
    """Return the messages of a payload, all at once. Raises what `PayloadFormat.slices` does."""
    into = Intake(len(payload), leave_out)
    for _ in format.slices(payload, into, decoding):
        pass
    return into.batch
