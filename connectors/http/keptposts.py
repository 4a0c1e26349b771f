"""The way in of HTTP where posts are on the disk before they are answered."""

from __future__ import annotations

from collections.abc import Awaitable

from headrace.compiler.component.buildcontext import Admits, KeptSource, Origin
from headrace.compiler.delivery import Batch
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.jsontext import Decoding
from headrace.connectors.http.source import described


class KeptPosts:
    """The pipeline's `Ingress`: every post is stored, with what an envelope shows of it if there is one."""

    is_behind = False

    def __init__(
        self,
        kept: KeptSource,
        admits: Admits | None,
        decoding: Decoding,
        format: PayloadFormat | None,
        *,
        wants_origin: bool,
    ) -> None:
        self._kept = kept
        self.wants_origin = wants_origin
        self.admits, self.decoding, self.format = admits, decoding, format

    @property
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""
        return self._kept.is_stopped

    def has_room_for(self, size: int) -> bool:
        """Return whether a body of so many bytes may be in memory beside those that are."""
        return self._kept.has_room_for(size)

    def keep(
        self,
        batch: Batch,
        origin: Origin | None,
        size: int,
        body: bytes | bytearray,
        *,
        is_json: bool,
    ) -> Awaitable[int]:
        """Have a post stored. Raises what `KeptSource.store` does."""
        about = {} if origin is None else described(origin)
        return self._kept.store(body, about, batch, size, is_json=is_json)

    def offer(self, batch: Batch, origin: Origin | None, size: int = 0) -> bool:
        """Take nothing that is not stored."""
        return False
