"""Answers that go on: what is sent of them, and when they are over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from headrace.web.asgi import AsgiMessage
from headrace.web.auth.access import caller_of

log = logging.getLogger("headrace.web")

ENDING: AsgiMessage = {"type": "http.response.body"}


def beginning(media_type: str) -> AsgiMessage:
    """Return what is sent ahead of the first part."""
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            (b"content-type", media_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            # nginx would hold parts back to fill its buffer.
            (b"x-accel-buffering", b"no"),
        ],
    }


def part(body: bytes) -> AsgiMessage:
    """Return what is sent of one part."""
    return {"type": "http.response.body", "body": body, "more_body": True}


async def until_one_ends(called: str, *works: Awaitable[object]) -> None:
    """Wait for the first of several works to end, and cancel the others; the log is told what broke."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for cause in ends:
        if isinstance(cause, Exception):
            log.error("%s broke", called, exc_info=cause)


async def signed_out(scope: AsgiMessage) -> None:
    """Wait until the session, or the token, that a client was let in by is over; some never are."""
    ended = caller_of(scope).ended
    await (asyncio.Future() if ended is None else ended())
