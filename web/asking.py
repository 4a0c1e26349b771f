"""Who asks, and whether anybody still waits for the answer.

A server tells an application that a client has left only when it is asked; a responder that works on
would not notice, and neither would the requests that wait behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import falcon
import falcon.asgi

from headrace.web.asgi import Receive, unless_gone
from headrace.web.threadqueue import ThreadQueue

P = ParamSpec("P")
T = TypeVar("T")


class Request(falcon.asgi.Request):
    """A request that can end what is done for it when its client leaves."""

    def __init__(
        self, scope: dict[str, Any], receive: Receive, *others: Any, **options: Any
    ) -> None:
        super().__init__(scope, receive, *others, **options)
        self._from_server = receive

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do what `asgi.unless_gone` does, for this request."""
        return await unless_gone(self._from_server, work)

    async def in_turn(
        self, turns: ThreadQueue, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what ``work`` makes of the body, in a thread, when it is its turn.

        To be called when the body has been read, as `unless_gone`.

        Raises:
            falcon.HTTPBadRequest: the client has left, and the turn is somebody else's.
            TooManyBodies: see `ThreadQueue`.
        """
        outcome = await self.unless_gone(_boxed(turns.take(work, *args, **kwargs)))
        if outcome is None:
            raise falcon.HTTPBadRequest(description="the client has left")  # answered to nobody
        return outcome[0]


async def _boxed(work: Coroutine[Any, Any, T]) -> tuple[T]:
    """Return what ``work`` returns, told apart from nothing."""
    return (await work,)
