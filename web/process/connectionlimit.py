"""How many clients a server has at once, how much they may have begun to send, and who goes first.

A server waits for requests that may never come and for bodies that may never end. Where there are
more connections than it may have, or more of such bodies than it can hold, those go that it has been
waiting for the longest, and everybody else is served. Whoever is being answered stays, and what they
have sent counts until they are: it is read in turn, and lies there until then.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable
from heapq import nsmallest
from itertools import count
from operator import attrgetter
from typing import Protocol

MOST_CONNECTIONS = 4096
MOST_HELD = 256 * 1024 * 1024
"""Bytes of all requests that have begun and are not answered."""
LEAVING = -1
"""The turn of one who has been answered and is only heard out: first of all."""
_KEPT_SHARE, _KEPT = 4, 32
"""What part of the files a process may have open is left to what is no client: pipelines, disks. And
how many at least."""
_TURN = attrgetter("turn")
_AT_ONCE = 16
"""What part of those who can go does so at once: looking for them takes as long as for one."""


class LimitedConnection(Protocol):
    """One connection, as the limit sees it."""

    @property
    def transport(self) -> asyncio.Transport:
        """What is cut off."""

    turn: int
    """Whose turn it was to be waited for: a lower number for who is waited for longer."""
    held: int
    """Bytes of requests that are not answered."""

    @property
    def is_awaited(self) -> bool:
        """Whether the server waits for a request, or for the rest of one, and nothing else."""


def room() -> int:
    """Return how many connections fit beside everything else a process has open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, files - max(files // _KEPT_SHARE, _KEPT)))


class ConnectionLimit:
    """The bounds of one server; ``connections`` are those that are open."""

    def __init__(self, most: int = MOST_CONNECTIONS, most_held: int = MOST_HELD) -> None:
        self._most, self._most_held = most, most_held
        self._held = 0
        self.turns = count()
        """The number of somebody whom the server begins to wait for is the next of them."""

    def admits(self, connection: LimitedConnection, connections: set[LimitedConnection]) -> bool:
        """Whether there is room for one who has come, perhaps because others had to leave."""
        if len(connections) <= self._most:
            return True
        awaited = [each for each in connections if each.is_awaited and each is not connection]
        leaving = nsmallest(-(-len(awaited) // _AT_ONCE), awaited, key=_TURN)
        _end(leaving, connections)
        return bool(leaving)

    def hold(
        self, connection: LimitedConnection, size: int, connections: set[LimitedConnection]
    ) -> bool:
        """Count bytes of a request that is not answered, and end others where they are too many.

        Whether there is room for them: where all that is held is of those who are being answered, the
        one who brings more has to go.
        """
        connection.held += size
        self._held += size
        if self._held <= self._most_held:
            return True
        holding = [each for each in connections if each.held and each.is_awaited]
        oldest = min(holding, key=_TURN, default=connection)
        self.release(oldest)
        if oldest is connection:
            return False
        _end([oldest], connections)
        return True

    def give_back(self, connection: LimitedConnection, size: int) -> None:
        """Count bytes no longer that are counted anew when they are read."""
        size = min(size, connection.held)
        connection.held -= size
        self._held -= size

    def release(self, connection: LimitedConnection) -> None:
        """Count what one has sent no longer: it is answered, or it never will be."""
        self._held -= connection.held
        connection.held = 0


def _end(leaving: Iterable[LimitedConnection], connections: set[LimitedConnection]) -> None:
    for connection in leaving:
        connections.discard(connection)  # the transport tells it later, and more may come before
        connection.transport.abort()
