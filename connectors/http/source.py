"""The input of HTTP: who may post, and the queue between the endpoint and the pump."""

from __future__ import annotations

import asyncio
import hmac
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from headrace.compiler.component.buildcontext import Admits, Context, Origin
from headrace.compiler.delivery import Acknowledgement, Batch
from headrace.compiler.edges import Arrival, QueueFill, Source
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import DecodedBatch
from headrace.connectors.http.credential import Auth

PASSED_ON = ("content-type", "user-agent", "x-request-id", "x-correlation-id", "traceparent")
"""Headers of a post that an envelope shows. A credential may not be one of them."""
_PASSED_ON = frozenset(name.encode() for name in PASSED_ON)

BEHIND = 16
"""Where more than a sixteenth of what may wait does, and more than one, posts are taken more slowly."""
CHUNK = 16
"""Posts handed to the pump at once: what has left the queue and is not in the pipeline yet."""


def admits(auth: Auth | None, ctx: Context) -> Admits | None:
    """Return what checks the credential. It takes as long for a wrong one as for a missing one."""
    if auth is None:
        return None
    name, value = auth.header(ctx)
    # A client writes UTF-8, and a server reads the octets of a header as Latin-1.
    name, wanted = name.lower(), value.encode().decode("latin-1").encode()

    def is_admitted(headers: Callable[[str], str | None]) -> bool:
        # Blanks around a value are not part of it. Source: RFC 9110, section 5.5.
        presented = auth.presented((headers(name) or "").strip(" \t"))
        return hmac.compare_digest(presented.encode("utf-8", "surrogatepass"), wanted)

    return is_admitted


class Posts(Source):
    """The queue between the endpoint and the pump: a source, and the pipeline's `Ingress`.

    It is bounded by ``capacity`` posts. The pump takes up to 16 at once and works them off one by
    one, so at most ``capacity`` + 16 are accepted and not yet in the pipeline.

    It is bounded by the bytes of their bodies as well. Those of a large body count until the pipeline
    has let go of it: a few of them would otherwise be on their way beside all that wait.
    """

    is_raw: ClassVar[bool] = False
    keep: ClassVar[None] = None

    def __init__(
        self,
        capacity: int,
        most_bytes: int | None,
        admits: Admits | None,
        decoding: Decoding,
        *,
        wants_origin: bool,
        format: PayloadFormat | None = None,
    ) -> None:
        self.admits = admits
        self.decoding = decoding
        self.format = format
        self.wants_origin = wants_origin
        self.is_behind = False
        self._many = max(capacity // BEHIND, 1)
        self._room = capacity
        """Posts that may wait; none when it is stopped."""
        self._most_bytes = math.inf if most_bytes is None else most_bytes
        self._bytes = self._large = 0
        self._queue: deque[Arrival] = deque()
        self._sizes: deque[int] = deque()
        self._posted = asyncio.Event()

    def has_room_for(self, size: int) -> bool:
        """Return whether a body of so many bytes may wait beside the others; alone any may."""
        return not self._bytes or self._bytes + size <= self._most_bytes

    def offer(self, batch: Batch, origin: Any, size: int = 0) -> bool:
        """Queue one post; False when there is no room or the pipeline is ending."""
        queue = self._queue
        if len(queue) >= self._room or (
            self._bytes + size > self._most_bytes and not self.has_room_for(size)
        ):
            return False
        self._bytes += size
        if isinstance(batch, DecodedBatch):
            self._large += 1
            batch.there.debt = Acknowledgement(partial(self._let_go, size))
            size = 0
        if not queue:
            self._posted.set()
        queue.append((batch, origin))
        self._sizes.append(size)
        self.is_behind = len(queue) > self._many
        return True

    def _let_go(self, size: int) -> None:
        """Count a large post no more: nothing is left of it."""
        self._large -= 1
        self._bytes -= size

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield what is queued, a few posts at a time; return when stopped and empty."""
        queue, sizes = self._queue, self._sizes
        while queue or self._room:
            if queue:
                # One by one where some are large: what is handed on together is let go together.
                posts = 1 if self._large else min(len(queue), CHUNK)
                yield [queue.popleft() for _ in range(posts)]
                self._bytes -= sum([sizes.popleft() for _ in range(posts)])
            else:
                self._posted.clear()
                await self._posted.wait()

    @property
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""
        return not self._room

    def queue(self) -> QueueFill:
        """Return how many posts wait."""
        return QueueFill("batches", len(self._queue), self._room)

    def describe(self, origin: Origin) -> dict[str, Any]:
        """Return what an envelope shows of a post."""
        return described(origin)

    def stop(self) -> bool:
        """Refuse posts from now on; what was accepted is read out, because it was answered 202."""
        self._room = 0
        self._posted.set()
        return True

    def close(self) -> list[int]:
        """Refuse posts, and forget those that nobody will read."""
        self.stop()
        lost = [len(batch) for batch, _ in self._queue]
        self._queue.clear()
        return lost


def described(origin: Origin) -> dict[str, Any]:
    """Return what an envelope shows of a post."""
    method, remote_addr, headers = origin
    return {
        "method": method,
        "remote_addr": remote_addr,
        "headers": {name.decode(): _text(value) for name, value in headers if name in _PASSED_ON},
    }


def _text(value: bytes) -> str:
    """Return a header value; empty when it is no text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""
