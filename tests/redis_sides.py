"""Both sides of Redis as components of a test: built over a server, and read or written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import redis

from headrace.connectors.redis import RedisConnection, RedisInput, RedisOutput
from headrace.connectors.redis.connection import Limits
from headrace.connectors.redis.sink import RedisSink
from headrace.connectors.redis.source import RedisSource
from tests import connected
from tests.clients import PATIENCE
from tests.connected import Reader
from tests.doubles import StubContext
from tests.services.redis import Redis


def context(server: Redis | str, **options: Any) -> StubContext:
    """Return a context whose connection `cache` is that server; a url is its own secret."""
    url = server if isinstance(server, str) else server.url
    secrets = options.pop("secrets", {}) | {"URL": url}
    connection = RedisConnection.load({"url": "${URL}", **options.pop("tls", {})})
    return StubContext(connections={"cache": connection}, secrets=secrets, **options)


def source(
    server: Redis | str,
    channel: str,
    ctx: StubContext | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> RedisSource:
    """Return a subscriber that has not subscribed."""
    config = RedisInput.load({"connection": "cache", "channel": channel, **options})
    made = config.source(ctx or context(server), limits)
    assert isinstance(made, RedisSource)
    return made


def sink(
    server: Redis | str,
    channel: str,
    ctx: StubContext | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> RedisSink:
    """Return a publisher that has not connected."""
    config = RedisOutput.load({"connection": "cache", "channel": channel, **options})
    made = config.open(ctx or context(server), limits)
    assert isinstance(made, RedisSink)
    return made


@asynccontextmanager
async def subscribed(made: RedisSource) -> AsyncIterator[Reader]:
    """Give the reader of a subscriber that is subscribed; close it in the end."""
    async with asyncio.timeout(PATIENCE), connected.subscribed(made) as reader:
        yield reader


async def payloads(reader: Reader, count: int) -> list[bytes]:
    """Return so many payloads."""
    found: list[bytes] = []
    while len(found) < count:
        found += [payload for payload, _ in await anext(reader)]
    return found


@contextmanager
def client(server: Redis) -> Iterator[redis.Redis]:
    """Give a client of the server's own driver, for what an operator or another program would do."""
    options = {} if server.tls is None else {"ssl_ca_certs": str(server.tls.ca_file)}
    with redis.Redis.from_url(server.url, **options) as it:
        yield it


@contextmanager
def listening(server: Redis, channel: str) -> Iterator[Iterator[bytes]]:
    """Give what is published on a channel."""
    with client(server) as it, it.pubsub() as subscription:
        subscription.subscribe(channel)
        assert subscription.get_message(timeout=PATIENCE)["type"] == "subscribe"
        yield (message["data"] for message in subscription.listen())
