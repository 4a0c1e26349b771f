"""Messages that are published one at a time, to find out on which of them a broker hangs up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.backoff import LASTING_SECONDS
from headrace.connectors.mqtt.mqttfailures import CUT_OFF, FAILURES
from headrace.connectors.mqtt.unconfirmedbatch import UnconfirmedBatch

if TYPE_CHECKING:
    from headrace.connectors.mqtt.sink import Publisher

LOSSES_ALONE = 3
"""Losses of the connection in a row with one message alone on the wire, until that is suspected."""


class PublisherLink(Protocol):
    """What connects to the broker, again and again."""

    where: str
    absences: int
    """How often no connection came about."""

    async def connected(self) -> Publisher:
        """Return an open connection, however long that takes."""


class LonePublishing:
    """Publishes messages of a batch one at a time, where a connection broke with some on their way.

    A broker of MQTT 3.1.1 that does not take a message hangs up, and so does one that stops. What tells
    them apart: a loss of the connection counts only if that was open for a while before the message
    was sent, nothing else was on the wire, and the broker ended it. With three of them in a row a message
    is suspected, and others are published. When one of those is confirmed it is tried once more; it is at
    fault if that ends in the same way and then another one is confirmed. Whatever looks like an outage, a
    connection that does not come about or ends by itself, makes all of that begin anew.

    Messages keep their order, but for those that are suspected.
    """

    def __init__(self, batch: UnconfirmedBatch, link: PublisherLink, clock: Clock) -> None:
        self._batch, self._link, self._clock = batch, link, clock
        self._due: deque[int] = deque()
        self._losses: dict[int, int] = {}
        """By index: how many losses in a row count."""
        self._suspected: dict[int, bool] = {}
        """By index: whether it was lost once more after something else had been confirmed."""

    async def publish(self) -> None:
        """Publish what was cut off, and others for as long as something is suspected.

        Raises:
            BatchFailed: there are no others any more that could tell.
        """
        batch = self._batch
        self._due.extend(batch.left[: batch.cut_off])
        while self._due or self._suspected:
            index = self._due.popleft() if self._due else self._another()
            if index is None:
                raise self._undecided()
            if await self._passes(index):
                self._passed(index)
        batch.cut_off = 0

    def _another(self) -> int | None:
        """Return one that is left and is not suspected, or the next of the batch; None: there is none."""
        for index in self._batch.left:
            if index not in self._suspected:
                return index
        return self._batch.next_index()

    async def _passes(self, index: int) -> bool:
        """Publish a message alone until it is confirmed, or suspected. Return whether it is confirmed."""
        while True:
            client, is_steady = await self._connected()
            client.publish([self._batch.payloads[index]])
            await client.confirmed()
            if not client.unconfirmed:
                return True
            if not (is_steady and client.is_hung_up and not client.has_taken):
                self._begin_anew()
                self._losses[index] = 0
            elif index in self._suspected:
                self._suspected[index] = True
                return False
            else:
                losses = self._losses[index] = self._losses.get(index, 0) + 1
                if losses == LOSSES_ALONE:
                    self._suspected[index] = False
                    return False

    async def _connected(self) -> tuple[Publisher, bool]:
        """Return a connection, and whether it has been open for a while.

        That is waited for where one broke with a message alone.
        """
        while True:
            absences = self._link.absences
            client = await self._link.connected()
            if self._link.absences != absences:
                self._begin_anew()
            seconds = LASTING_SECONDS - client.seconds
            if seconds <= 0 or not self._losses:
                return client, seconds <= 0
            await self._clock.sleep(seconds)
            if not client.is_lost:
                return client, True
            self._begin_anew()  # it broke with nothing on the wire

    def _begin_anew(self) -> None:
        """Suspect nothing: there is, or was, an outage."""
        self._losses.clear()
        self._suspected.clear()

    def _passed(self, index: int) -> None:
        """Note that a message is confirmed; those that are suspected are tried once more, or at fault."""
        self._batch.left.remove(index)
        self._losses.pop(index, None)
        self._suspected.pop(index, None)
        for other, is_lost_again in [*self._suspected.items()]:
            if is_lost_again:
                del self._suspected[other]
                self._losses.pop(other, None)
                self._batch.refuse(other, f"{self._link.where} hangs up on it, and takes others")
            elif other not in self._due:
                self._due.appendleft(other)

    def _undecided(self) -> BatchFailed:
        return BatchFailed(
            f"{self._link.where} hangs up on what is published",
            FAILURES.of(CUT_OFF),
            done=self._batch.done(),
            refused=self._batch.refused,
            was_alone=True,
        )
