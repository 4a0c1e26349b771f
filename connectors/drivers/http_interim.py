"""Connections of the HTTP client to servers that only ever announce an answer.

Any number of interim answers (``100 Continue``) may come before one. The library takes them as fast as
they are sent, queues them without a bound and waits on: the loop does nothing else then.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

MOST_INTERIM = 16
"""Interim answers to one request; servers send one or two."""


class Handler(ResponseHandler):
    """A connection that is given up when too many interim answers have come."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take an answer, or the announcement of one."""
        message, _ = data
        is_interim = 100 <= message.code < 200 and message.code != 101
        self._interim = self._interim + 1 if is_interim else 0
        if self._interim <= MOST_INTERIM:
            super().feed_data(data, size)
        elif self._interim == MOST_INTERIM + 1:
            if self.transport is not None:
                self.transport.close()
            self.set_exception(HttpProcessingError(message="too many interim answers"))


class Connector(TCPConnector):
    """Makes such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory: Any = partial(Handler, loop=self._loop)
