"""Bodies of requests that know whether they were begun: what is cut off before that has reached nobody.

The driver asks a body to be written when the connection is there and the head of the request is made.

Source: https://docs.aiohttp.org/en/stable/client_reference.html
"""

from __future__ import annotations

from io import BytesIO

from aiohttp import BytesIOPayload, BytesPayload
from aiohttp.abc import AbstractStreamWriter


class SentBytes(BytesPayload):
    """A body that is written at once."""

    is_begun = False

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Note that it is begun, and write it."""
        self.is_begun = True
        await super().write_with_length(writer, content_length)


class SentPieces(BytesIOPayload):
    """A body that is written in pieces, so that others have their turns meanwhile."""

    is_begun = False

    def __init__(self, body: bytes) -> None:
        super().__init__(BytesIO(body))

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Note that it is begun, and write it."""
        self.is_begun = True
        await super().write_with_length(writer, content_length)


SentBody = SentBytes | SentPieces
