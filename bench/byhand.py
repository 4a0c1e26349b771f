"""Routes through a broker as somebody writes them by hand, with the client library alone.

Each reads what is published to ``by-hand.in``, decodes every payload, encodes it again and publishes it
to ``by-hand.out``, as many at a time as the pipeline beside it has in a batch, and no more promises than
that one makes. It never waits for a batch to fill. It is up when the block begins and gone when that ends.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import msgspec

from bench.load import HOST

SOURCE, TARGET = "by-hand.in", "by-hand.out"
MOST_UNDER_WAY = 1600
"""Messages that are written and not confirmed: as many as a pipeline has in 16 batches of a hundred."""
MOST_PUBLISHING = 50
"""Messages of a batch that are published with MQTT at once."""

Route = Callable[[int, int], AbstractAsyncContextManager[None]]
"""Takes the port of the broker and the size of a batch."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def again(payload: bytes) -> bytes:
    """Decode and encode."""
    return _encode(_decode(payload))


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something beside the block."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def kafka(port: int, size: int) -> AsyncIterator[None]:
    """Consume in a group, produce; each batch is confirmed before many more are."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    address = f"{HOST}:{port}"
    consumer = AIOKafkaConsumer(
        SOURCE, bootstrap_servers=address, group_id="by-hand", max_partition_fetch_bytes=1 << 20
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=address, acks="all") as producer:
        for partition in consumer.assignment():
            await consumer.position(partition)
        async with running(_kafka(consumer, producer, size)):
            yield


async def _kafka(consumer: Any, producer: Any, size: int) -> None:
    under_way: deque[Awaitable[Any]] = deque()
    while True:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=size)).values():
            for record in records:
                under_way.append(await producer.send(TARGET, again(record.value)))
        while len(under_way) > MOST_UNDER_WAY:
            await under_way.popleft()


@asynccontextmanager
async def nats(port: int, size: int) -> AsyncIterator[None]:
    """Publish in the callback; the library gathers what it sends, so there are no batches."""
    import nats

    client = await nats.connect(f"nats://{HOST}:{port}")

    async def publish(message: Any) -> None:
        await client.publish(TARGET, again(message.data))

    await client.subscribe(SOURCE, cb=publish)
    await client.flush()
    try:
        yield
    finally:
        await client.drain()


@asynccontextmanager
async def redis(port: int, size: int) -> AsyncIterator[None]:
    """Publish what has arrived in one pipeline."""
    from redis.asyncio import Redis

    async with Redis(host=HOST, port=port) as client, client.pubsub() as subscribed:
        await subscribed.subscribe(SOURCE)
        await subscribed.get_message(timeout=None)
        async with running(_redis(client, subscribed, size)):
            yield


async def _redis(client: Any, subscribed: Any, size: int) -> None:
    while True:
        message = await subscribed.get_message(timeout=None)
        async with client.pipeline(transaction=False) as pipeline:
            while message is not None:
                pipeline.publish(TARGET, again(message["data"]))
                if len(pipeline) >= size:
                    break
                message = await subscribed.get_message(timeout=0)
            await pipeline.execute()


def mqtt(qos: int) -> Route:
    """Return the route of a quality of service."""

    @asynccontextmanager
    async def route(port: int, size: int) -> AsyncIterator[None]:
        """Drain the queue of the client; acknowledge what is confirmed."""
        import aiomqtt

        at_once = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = aiomqtt.Client(HOST, port, identifier="by-hand", socket_options=[at_once])
        client.pending_calls_threshold = MOST_PUBLISHING
        client._client.manual_ack_set(qos > 0)
        async with client:
            await client.subscribe(SOURCE, qos=qos)
            async with running(_mqtt(client, qos, size)):
                yield

    return route


async def _mqtt(client: Any, qos: int, size: int) -> None:
    queue = client._queue
    while True:
        came = [await queue.get()]
        while len(came) < size and not queue.empty():
            came.append(queue.get_nowait())
        if qos:
            for start in range(0, len(came), MOST_PUBLISHING):
                some = came[start : start + MOST_PUBLISHING]
                await asyncio.gather(
                    *(client.publish(TARGET, again(each.payload), qos) for each in some)
                )
                for each in some:
                    client._client.ack(each.mid, each.qos)
        else:
            for each in came:
                await client.publish(TARGET, again(each.payload))
