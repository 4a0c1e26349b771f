"""Connections of the HTTP client to servers that only ever announce an answer.

Any number of interim answers (``100 Continue``) may come before one. The library takes them as fast as
they are sent, queues them without a bound and waits on: the loop does nothing else then. It has no
setting for that, and a class of responses of ours (`response_class`) would see them only once they are
queued, and not at all on a connection that waits to be used again.

Source: RFC 9110, section 15.2; aiohttp 3.14, `client_proto` and `ClientResponse.start`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import StreamReader, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

MOST_INTERIM = 16
"""Interim answers to one request; servers send one or two."""
TOO_MANY = f"the server sent more than {MOST_INTERIM} interim answers, and no other"
PIECE = 16 * 1024
"""Bytes that are parsed at once: there may be six hundred interim answers in them."""


class Handler(ResponseHandler):
    """A connection that is given up when too many interim answers have come."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._interim = 0
        self._body: StreamReader | None = None

    def data_received(self, data: bytes) -> None:
        """Parse what has come, piece by piece while no body comes, until it is given up."""
        start = 0
        while len(data) - start > PIECE and (self._body is None or self._body.is_eof()):
            super().data_received(data[start : start + PIECE])
            start += PIECE
            if self._interim > MOST_INTERIM:
                return
        super().data_received(data[start:])  # nothing is something, too: it resumes the parser

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take an answer, or the announcement of one."""
        message, body = data
        is_interim = 100 <= message.code < 200 and message.code != 101
        self._interim = self._interim + 1 if is_interim else 0
        self._body = body
        if self._interim <= MOST_INTERIM:
            super().feed_data(data, size)
        elif self._interim == MOST_INTERIM + 1:
            if self.transport is not None:
                self.transport.close()
            self.set_exception(HttpProcessingError(message=TOO_MANY))


class Connector(TCPConnector):
    """Makes such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Private to the library, and the only place where a class of connections can be given.
        self._factory: Any = partial(Handler, loop=self._loop)
