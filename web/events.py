"""`GET /events`: the live feed as server-sent events.

    data: {"pipeline_id":"hello","stage":"input","ts":1770000000123,"seq":7,...}

    event: lagged
    data: 12

    event: error
    data: "pipeline 'hello' output: ..."

A comment is sent at once, so that proxies pass the headers on, and every 15 seconds after. There is
no `id:` and no replay: the stream is a live sample. A client that stops reading loses events and
nothing else waits for it: what it has not taken is bounded by its listener and its socket.

It is answered ahead of falcon, whose own event streams notice a client that has left only with the
next event, and keep the pipelines reporting until then.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import logging

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.feed import Event, Lagged
from headrace.web.asgi import Message, Receive, Send, gone
from headrace.web.service import Listener, Service

EVENTS_PATH = "/events"
KEEP_ALIVE_SECONDS = 15.0

log = logging.getLogger("headrace.web")

_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        # nginx would hold events back to fill its buffer.
        (b"x-accel-buffering", b"no"),
    ],
}
_COMMENT = b":\n\n"


class EventStream:
    """Answers each request with a stream of its own."""

    def __init__(self, service: Service) -> None:
        self._engine = service.engine
        self._clock = service.clock

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Stream until the client leaves or the feed ends."""
        await send(_START)
        listener = self._engine.observe()
        parts = [
            asyncio.ensure_future(part)
            for part in (_copy(listener, send), _keep_alive(self._clock, send), gone(receive))
        ]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listener.close()
            for part in parts:
                part.cancel()
            ends = await asyncio.gather(*parts, return_exceptions=True)
        for cause in ends:
            if isinstance(cause, Exception):
                log.error("an event stream broke", exc_info=cause)
        await send({"type": "http.response.body"})


def frame(event: Event | Lagged) -> bytes:
    """Return one event as it goes over the wire."""
    if isinstance(event, Lagged):
        return b"event: lagged\ndata: %d\n\n" % event.count
    if event.name:
        return b"event: %b\ndata: %b\n\n" % (event.name.encode(), event.data)
    return b"data: %b\n\n" % event.data


async def _copy(listener: Listener, send: Send) -> None:
    async for event in listener:
        await send(_chunk(frame(event)))


async def _keep_alive(clock: Clock, send: Send) -> None:
    while True:
        await send(_chunk(_COMMENT))
        await clock.sleep(KEEP_ALIVE_SECONDS)


def _chunk(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
