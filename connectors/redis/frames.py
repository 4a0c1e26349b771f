"""What a Redis server may send for one answer: so much, and in the shape that our commands are answered in.

The driver keeps an answer until it is complete, however long it says it will be, and makes room for as
many parts as it announces. So it is fed here, and neither goes on without end.
"""

from __future__ import annotations

import re
from typing import Any

from hiredis import Reader
from redis._parsers import _AsyncHiredisParser
from redis.asyncio import Connection
from redis.exceptions import InvalidResponse

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of one answer, a message with its channel for instance. Servers by themselves drop a subscriber
that is behind by half of it."""
MOST_PARTS_BYTES = 1024 * 1024
"""Bytes of those parts of one answer that are complete: a channel's name, and nothing else is large."""

_MANY = re.compile(rb"[*>%~|][0-9]{3,}\r\n")
"""Announces an answer of a hundred parts or more, unless it is in the middle of a text."""
_BEGUN = re.compile(rb"[*>%~|][0-9]{0,20}\r?\Z")
"""May become such an announcement with what comes next; `$` would let an end of line follow."""


class TooLarge(InvalidResponse):
    """One answer is larger than any that is waited for."""

    def __init__(self) -> None:
        super().__init__(f"sends an answer of more than {MOST_BYTES >> 20} MiB")


class BoundedReader:
    """The driver's reader, as its parser uses it; ``reader`` is the driver's own, for who is in a hurry."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._rest = b""
        self._at = 0
        self._unfinished = 0

    def feed(self, data: bytes) -> None:
        """Take what has arrived.

        Raises:
            TooLarge: with that one answer is.
            InvalidResponse: it has more parts than any that we ask for.
        """
        self._rest = self._rest[self._at :] + data
        self._at = 0
        self._unfinished += len(data)
        waiting = self.reader.len()
        if waiting > MOST_BYTES:
            raise TooLarge
        if self._unfinished - waiting - len(self._rest) > MOST_PARTS_BYTES:
            raise InvalidResponse("an answer of many parts")

    def gets(self, *how: bool) -> Any:
        """Return the next answer, or the driver's sign that there is none yet.

        Raises:
            InvalidResponse: it announces more parts than any that we ask for.
        """
        while type(reply := self.reader.gets(*how)) is object and self._goes_on():
            pass
        if type(reply) is not object:
            self._unfinished = 0
        return reply

    def has_data(self) -> bool:
        """Return whether there is anything that was not returned."""
        return self._at < len(self._rest) or self.reader.has_data()

    def let_go(self) -> None:
        """Forget what has arrived now: whatever still refers to a connection may do so for long."""
        self.reader = Reader(notEnoughData=object())
        self._rest, self._at = b"", 0

    def _goes_on(self) -> bool:
        """Feed the driver up to where many parts may be announced; return whether that was anything.

        It has no more to give when this is called. If it waits for the rest of a text, there it is in
        the middle of that text.
        """
        rest, at = self._rest, self._at
        if _MANY.match(rest, at) and not self.reader.has_data():
            raise InvalidResponse("an answer of many parts")
        found = _MANY.search(rest, at + 1) or _BEGUN.search(rest, max(at, len(rest) - 22))
        ends = found.start() if found else len(rest)
        if ends <= at:
            return False
        self.reader.feed(rest, at, ends - at)
        self._at = ends
        if ends == len(rest):
            self._rest, self._at = b"", 0
        return True


class BoundedParser(_AsyncHiredisParser):
    """The driver's parser over a bounded reader."""

    def on_connect(self, connection: Connection) -> None:
        """Begin with a new connection."""
        super().on_connect(connection)  # type: ignore[no-untyped-call]
        self._reader = BoundedReader(self._reader)  # type: ignore[arg-type,assignment]
