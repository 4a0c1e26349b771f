"""The output of Redis: batches published over one connection, which is made again when it is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable, class_of
from headrace.connectors.network.messageoutput import MessageBodies
from headrace.connectors.network.portions import PORTION_MESSAGES, portions
from headrace.connectors.redis.connection import ErrorReply, RedisClient, RedisServer
from headrace.connectors.redis.redisfailures import FAILURES, UNANSWERED


class RedisSink(AwaitingSink):
    """Publishes over one connection, which is made again when it is lost."""

    def __init__(
        self, server: RedisServer, channel: str, bodies: MessageBodies, ctx: Context
    ) -> None:
        self._server, self._channel, self._ctx = server, channel, ctx
        self._bodies = bodies
        self._client: RedisClient | None = None

    async def start(self) -> None:
        """Connect, and learn whether this user may publish on the channel.

        Redis looks at that when it queues a command of a transaction, and the transaction is
        discarded: nobody sees a message. A user who may use no transactions learns it later.
        """
        try:
            refusal = await self._rehearsed(await self._connected())
            if refusal is not None:
                raise self._server.refusal(refusal)
        except BaseException:
            await self.finish()
            raise

    async def write(self, batch: Batch) -> None:
        """Publish the messages of a batch in order.

        Raises:
            Unreachable: the server does not answer, or not now.
            BatchFailed: it refuses one of the messages, or one is none of those that can be sent.
        """
        bodies = await self._bodies.of_any(batch)
        replies: list[Any] = []
        client: RedisClient | None = None
        try:
            client = await self._connected()
            for portion in portions(bodies):
                await client.publish(self._channel, portion, replies)
                if _refusal(replies) is not None:
                    break
        except Unreachable as cause:
            await self.finish()
            if _refusal(replies) is None:
                if client is None:  # nothing was sent
                    raise
                if replies:
                    self._ctx.warn(
                        f"of a batch of {len(batch)} messages {len(replies)} were published before the"
                        " connection was lost; of the others nobody knows"
                    )
                failure, done = FAILURES.of(UNANSWERED), range(len(replies))
                raise Unreachable(str(cause), failure, done=done) from cause
        except BuildRefused as refused:  # since it was built: not for every batch anew
            raise Unreachable(str(refused), class_of(refused)) from None
        if (refusal := _refusal(replies)) is None:
            return
        if refusal.is_passing:
            await self.finish()
        raise self._failed(refusal, replies, len(batch))

    async def finish(self) -> None:
        """Hang up."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _failed(self, refusal: ErrorReply, replies: Sequence[Any], count: int) -> BatchFailed:
        """Return what to raise for a batch of so many messages one of which was refused, the first so."""
        published = [index for index, reply in enumerate(replies) if type(reply) is int]
        if refusal.is_passing:
            passing = self._server.refusal(refusal)
            return Unreachable(str(passing), refusal.failure, done=published)
        said = self._server.words(refusal)
        if published:
            self._ctx.warn_once(
                f"of a batch of {count} messages {len(published)} were published: {said}"
            )
            said = f"published in part: {said}"
        refused = {
            index: self._server.words(reply)
            for index, reply in enumerate(replies)
            if type(reply) is ErrorReply and reply.failure == "invalid"
        }
        return BatchFailed(said, refusal.failure, done=published, refused=refused)

    async def _rehearsed(self, client: RedisClient) -> ErrorReply | None:
        """Return what Redis has against publishing on the channel, if it tells."""
        if isinstance(await client.ask("MULTI"), ErrorReply):
            return None
        queued = await client.ask("PUBLISH", self._channel, b"")
        if isinstance(await client.ask("DISCARD"), ErrorReply):
            await self.finish()  # the transaction goes with its connection
        return queued if isinstance(queued, ErrorReply) else None

    async def _connected(self) -> RedisClient:
        """Return the connection; a new one if the server has hung up meanwhile."""
        if self._client is not None and await self._client.is_spent():
            await self.finish()
        if self._client is None:
            self._client = await self._server.connect()
        return self._client


def _refusal(replies: Sequence[Any]) -> ErrorReply | None:
    """Return the first refusal: it is among the answers to the last portion, if there is one."""
    return next((reply for reply in replies[-PORTION_MESSAGES:] if type(reply) is ErrorReply), None)
