"""Who may call what: the levels, and who a caller is. `web/app.py` compares.

A server without accounts checks nothing, so everybody holds the highest level.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.compiler.errors import HeadraceError

READING = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""

_FROM_ELSEWHERE = (b"sec-fetch-site", b"cross-site")
_CALLER = "headrace.caller"


class Access(enum.IntEnum):
    """What an endpoint needs and what a caller holds; a higher level includes the lower ones."""

    PUBLIC = 0
    READ = 1
    ADMIN = 2


class NotSignedIn(HeadraceError):
    """Nobody is signed in, and the endpoint is not for everybody."""


class Forbidden(HeadraceError):
    """The caller's level is too low for the endpoint."""


class TurnedAway(HeadraceError):
    """Somebody is not let in by what they have sent, of which the text tells nothing."""

    reason = ""
    """Why, for the log. It tells nothing of it either."""

    def during(self, operation: str) -> TurnedAway:
        """Return it with what was asked for."""
        return type(self)(f"{operation}: {self}")


class FromElsewhere(TurnedAway):
    """A page of another site has its visitor's browser ask, or could have."""

    reason = "a page of another site may have sent it"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what they may do. ``PUBLIC`` is somebody who is not signed in."""

    access: Access
    username: str | None = None
    ended: Callable[[], Awaitable[object]] | None = field(default=None, compare=False, repr=False)
    """Returns when what they were let in by is over; None: it never is."""


NOBODY = Caller(Access.PUBLIC)


class Authenticator(Protocol):
    """Who is let in as whom."""

    @property
    def is_guarded(self) -> bool:
        """Whether anybody is asked who they are."""

    async def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Return who sent a request (an ASGI scope), `NOBODY` for whoever is not signed in.

        Raises:
            TurnedAway: it would change something, and another site may have had it sent; or there
                is no time to find out.
        """

    async def close(self) -> None:
        """Let go of what is open to others."""


class OpenAccess:
    """Authentication of a server without accounts: everybody may do everything.

    All but a page of another site that has its visitor's browser ask: a server that listens on this
    machine alone is still within reach of that. It may read no answer, so reading needs no care.

    Source: https://www.w3.org/TR/fetch-metadata/
    """

    is_guarded = False

    async def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Return who may do everything, unless another site had them ask."""
        if scope["method"] not in READING and _FROM_ELSEWHERE in scope["headers"]:
            raise FromElsewhere(
                "a page of another site asks for this: open the server's own instead"
            )
        return _ANYBODY

    async def close(self) -> None:
        """Do nothing: nothing is open."""


_ANYBODY = Caller(Access.ADMIN)


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Return who sent a request that was admitted."""
    caller: Caller = scope.get(_CALLER, NOBODY)
    return caller


def let_in(scope: dict[str, Any], caller: Caller) -> None:
    """Keep who sent a request, for `caller_of`."""
    scope[_CALLER] = caller
