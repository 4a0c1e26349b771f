"""The output of HTTP: batches sent one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import encode_large
from headrace.connectors.network.messageoutput import MessageBodies


class HttpSink(AwaitingSink):
    """Sends batches one after the other over one session."""

    def __init__(
        self,
        client: HttpClient,
        clock: Clock,
        *,
        is_single: bool,
        bodies: MessageBodies | None = None,
    ) -> None:
        """Take what makes the bodies of single messages; None: each is JSON, made when its turn comes."""
        self._client, self._clock = client, clock
        self._is_single, self._bodies = is_single, bodies

    async def write(self, batch: Batch) -> None:
        """Send the batch, or its messages in order until one is refused."""
        if self._bodies is not None:
            await self._send_each(await self._bodies.of_any(batch))
        elif self._is_single:
            await self._send_each(map(encode, batch))
        elif is_large(batch):
            await self._client.send(await encode_large(batch, self._clock))
        else:
            await self._client.send(encode(batch))

    async def _send_each(self, bodies: Iterable[bytes]) -> None:
        """Send messages, each by itself.

        Raises:
            BatchFailed: one of them fails. Those before it are done.
        """
        sent = 0
        try:
            for body in bodies:
                await self._client.send(body)
                sent += 1
        except BatchFailed as cause:
            text = str(cause)
            refused = {sent: text} if cause.failure == "invalid" else {}
            raise type(cause)(
                text,
                cause.failure,
                done=range(sent),
                refused=refused,
                is_answered=cause.is_answered,
            ) from None

    async def finish(self) -> None:
        """Close the session."""
        await self._client.close()
