"""The few words of ASGI for what is answered ahead of the framework.

Source: https://asgi.readthedocs.io/en/stable/specs/www.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

AsgiMessage = dict[str, Any]
"""A scope, something received or something sent."""
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
Asgi = Callable[..., Awaitable[None]]
"""An application: scope, receive, send; for an endpoint also what its path captures, as bytes."""
CLOSE = (b"connection", b"close")
"""The header of an answer behind which the connection ends."""


async def gone(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """Return what ``work`` returns; cancel it, and return None, when the client has left.

    To be called when the body has been read: nobody else may ask the server meanwhile.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()
        del working, leaving  # what was raised holds this frame: it would be a cycle


def starting(status: int, length: int, *headers: tuple[bytes, bytes]) -> AsgiMessage:
    """Return the message that starts a JSON answer of so many bytes."""
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % length),
            *headers,
        ],
    }


async def respond(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole JSON answer."""
    await send(starting(status, len(body), *headers))
    await send({"type": "http.response.body", "body": body})
