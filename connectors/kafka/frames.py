"""What a Kafka broker may send as one answer: so much, and what the driver can make something of.

An answer says how long it is before it comes, and the driver waits for as much. What it cannot read it
logs as a fault of its own, with a traceback for each connection; here it is the broker's, told once.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiokafka.conn
from aiokafka.conn import AIOKafkaConnection

MOST_BYTES = 128 * 1024 * 1024
"""Bytes of one answer. We ask for 16 MiB of records, and a batch of them that is larger comes alone."""

NONSENSE = "answers, and not as Kafka does"

log = logging.getLogger("headrace.pipeline")


class NotKafka(ConnectionError):
    """A broker sends what none does. Constant text, without the address."""


class Frames:
    """The driver's reader, which reads a length and then as many bytes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.at_eof = reader.at_eof

    async def readexactly(self, count: int) -> bytes:
        """Return so many bytes.

        Raises:
            NotKafka: no answer is as long, or that is no length.
        """
        if count > MOST_BYTES:
            raise NotKafka(f"{NONSENSE}: more than {MOST_BYTES >> 20} MiB at once")
        if count < 0:
            raise NotKafka(NONSENSE)
        return await self._reader.readexactly(count)


class BoundedConnection(AIOKafkaConnection):  # type: ignore[misc]
    """A connection of the driver that reads no more than it should."""

    _reader: Any

    def _create_reader_task(self) -> Any:
        self._reader = Frames(self._reader)
        return super()._create_reader_task()

    async def _do_version_lookup(self) -> None:
        try:
            await super()._do_version_lookup()
        except (AssertionError, TypeError) as cause:
            raise NotKafka(NONSENSE) from cause

    def _handle_frame(self, resp: bytes) -> None:
        try:
            super()._handle_frame(resp)
        except Exception as cause:
            log.debug("%s:%s: an answer cannot be read", self.host, self.port, exc_info=True)
            raise NotKafka(NONSENSE) from cause


def bound() -> None:
    """Have every client of the driver connect so: it takes no other way to be told."""
    aiokafka.conn.AIOKafkaConnection = BoundedConnection


def nonsense(cause: BaseException | None) -> str | None:
    """Return what a broker sent that none does, if that is behind an error of the driver."""
    while cause is not None and not isinstance(cause, NotKafka):
        cause = cause.__cause__
    return None if cause is None else str(cause)
