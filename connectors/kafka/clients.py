"""The driver's clients: whether they have lost their brokers, and how they are closed in time.

The driver connects again by itself and keeps to itself that it has to. A consumer so stays the member
of its group that it was, and goes on as soon as the broker is back; a new one would have to wait until
the group has given up the old one. What is missing is told here.

The driver shows neither its connections nor how to end them at once, so they are taken from inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from itertools import chain
from typing import Any

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.kafka.cluster import Cluster
from headrace.connectors.kafka.layout import Missing

LOOK_SECONDS = 1.0
"""How long a batch waits before it is looked whether anybody is there; how long they may take to say."""
MISSING_SECONDS = 3.0
"""How long something may be missing, while brokers answer, before that counts as a failure."""
LEAVE_SECONDS = 0.25
"""How long a client may take to close in order; then to notice that it is cut off; then to be ended."""


class Outage:
    """Whether the brokers of a client are gone. Counts that as a failure, and notes their return.

    With a ``group``, the broker that looks after it is one of them.
    """

    def __init__(
        self, cluster: Cluster, topic: str, ctx: Context, group: str | None = None
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ctx = ctx
        self._group = group
        self._backoff = Backoff()
        self._next = 0.0
        self._missing_since: float | None = None
        self.reason: str | None = None
        """What was told of it last; None when there is none."""

    async def look(self, client: Any, partitions: Iterable[Any]) -> None:
        """Count it as a failure when those who are needed do not answer: each try of ours.

        They are those who lead some partitions, and who looks after the group. We try on the backoff;
        the driver does by itself, several times a second.
        """
        monotonic = self._ctx.clock.monotonic
        if are_led(client, partitions) and (self._group is None or is_coordinated(client)):
            self.over()
        elif monotonic() >= self._next:
            if reason := await self._ask():
                self.reason = reason
                self._ctx.fail(reason)
            self._next = monotonic() + self._backoff.next()

    def over(self) -> None:
        """Note that it is over, if there was one."""
        if self._next:
            self._next, self._missing_since = 0.0, None
            self._backoff.reset()
        if self.reason is not None:
            self.reason = None
            self._ctx.note("connected again")

    async def _ask(self) -> str | None:
        """Return what is wrong, as the brokers say; None when that may be over in a moment."""
        try:
            await self._cluster.reach(self._topic, LOOK_SECONDS)
        except Missing as cause:
            return self._lasting(str(cause))
        except (BuildRefused, Unreachable) as cause:
            self._missing_since = None
            return str(cause)
        try:
            await self._cluster.examine(self._topic, self._group, LOOK_SECONDS)
        except (BuildRefused, Unreachable) as cause:
            return self._lasting(str(cause))
        return self._lasting(f"a broker that leads a partition of '{self._topic}' does not answer")

    def _lasting(self, reason: str) -> str | None:
        """Return what is missing, when something has been for a while."""
        now = self._ctx.clock.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        return reason if now - self._missing_since >= MISSING_SECONDS else None


def are_led(client: Any, partitions: Iterable[Any]) -> bool:
    """Return whether a client is connected to the leaders of some partitions; of none: to anybody."""
    leaders = {client.cluster.leader_for_partition(each) for each in partitions}
    connected = {node for (node, _), each in client._conns.items() if each.connected()}
    return leaders <= connected if leaders else bool(connected)


def is_coordinated(client: Any) -> bool:
    """Return whether a client is connected to the broker that looks after its group."""
    from aiokafka.client import ConnectionGroup

    return any(
        group == ConnectionGroup.COORDINATION and each.connected()
        for (_, group), each in client._conns.items()
    )


async def close_consumer(consumer: Any) -> None:
    """Leave the group and close, within a second or so."""
    fetcher, coordinator = consumer._fetcher, consumer._coordinator
    tasks = [] if fetcher is None else [fetcher._fetch_task]
    if coordinator is not None:
        tasks += [coordinator._coordination_task, coordinator._heartbeat_task]
    await _close(consumer.stop(), consumer._client, tasks)


async def close_producer(producer: Any, *, is_idle: bool) -> None:
    """Close, within a second or so. Unless it is idle, what is not sent by now never is."""
    stop = producer.stop() if is_idle else _stop_sending(producer)
    await _close(stop, producer.client, [producer._sender.sender_task])


async def _stop_sending(producer: Any) -> None:
    """Stop a producer that has something to send, and would send it before it stops."""
    producer._closed = True
    _cut_off(_transports(producer.client))
    await producer._sender.close()
    await producer.client.close()


async def _close(
    stop: Coroutine[Any, Any, None], client: Any, tasks: Sequence[asyncio.Task[Any] | None]
) -> None:
    """Stop a client in order; then without its connections; then without the tasks it waits for."""
    transports = _transports(client)  # the driver forgets those that it closes
    stopping = asyncio.ensure_future(stop)
    await asyncio.wait([stopping], timeout=LEAVE_SECONDS)
    if not stopping.done():
        _cut_off(transports, _transports(client))
        await asyncio.wait([stopping], timeout=LEAVE_SECONDS)
    synchronizing = client._sync_task
    if not stopping.done():
        await _end([*tasks, stopping])
        _cut_off(_transports(client))
    await _end([synchronizing])
    if not stopping.cancelled():
        stopping.exception()  # looked at: who is let go of need not say why


async def _end(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks until they end: the driver misses it when something else comes at once."""
    ending = {task for task in tasks if task is not None and not task.done()}
    while ending:
        for task in ending:
            task.cancel()
        _, ending = await asyncio.wait(ending, timeout=LEAVE_SECONDS / 4)


def _transports(client: Any) -> list[asyncio.Transport]:
    connections = [each for each in client._conns.values() if each._writer is not None]
    return [each._writer.transport for each in connections]


def _cut_off(*transports: Iterable[asyncio.Transport]) -> None:
    for each in chain(*transports):
        each.abort()


def said(cause: BaseException) -> str:
    """Return what an error of the driver says, by Kafka's own name for it if there is one."""
    return str(getattr(cause, "message", None) or type(cause).__name__)
