"""Who may call what: every endpoint names the level it needs, and one function compares.

A server without accounts checks nothing, so everybody holds the highest level.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.web.endpoints.row import Endpoint


_READING = ("GET", "HEAD", "OPTIONS")
_FROM_ELSEWHERE = (b"sec-fetch-site", b"cross-site")


class Access(enum.IntEnum):
    """What an endpoint needs and what a caller holds; a higher level includes the lower ones."""

    PUBLIC = 0
    READ = 1
    ADMIN = 2


class Forbidden(HeadraceError):
    """The caller's level is too low for the endpoint."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what they may do. ``PUBLIC`` is somebody who is not signed in."""

    access: Access
    username: str | None = None


class Doors(Protocol):
    """Who is let in as whom."""

    async def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Return who sent a request (an ASGI scope)."""


class Open:
    """The doors of a server without accounts: everybody may do everything.

    All but a page of another site that has its visitor's browser ask: a server that listens on this
    machine alone is still within reach of that. It may read no answer, so reading needs no care.

    Source: https://www.w3.org/TR/fetch-metadata/
    """

    async def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Return who may do everything, unless another site had them ask."""
        if scope["method"] not in _READING and _FROM_ELSEWHERE in scope["headers"]:
            return Caller(Access.PUBLIC)
        return Caller(Access.ADMIN)


def check(endpoint: Endpoint, caller: Caller) -> None:
    """Let a caller through.

    Raises:
        Forbidden: the table asks for more.
    """
    if caller.access < endpoint.access:
        needed, has = endpoint.access.name.lower(), caller.access.name.lower()
        raise Forbidden(f"{endpoint.operation}: needs '{needed}', the caller has '{has}'")
