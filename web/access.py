"""Who may call what: every endpoint names the level it needs, and one function compares.

A server without accounts checks nothing, so everybody holds the highest level.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.web.endpoints import Endpoint


_READING = ("GET", "HEAD", "OPTIONS")
_FROM_ELSEWHERE = (b"sec-fetch-site", b"cross-site")


class Access(enum.IntEnum):
    """What an endpoint needs and what a caller holds; a higher level includes the lower ones."""

    PUBLIC = 0
    READ = 1
    ADMIN = 2


class Forbidden(HeadraceError):
    """The caller's level is too low for the endpoint."""


def held_by(scope: Mapping[str, Any]) -> Access:
    """Return what the sender of a request may do: everything, as there are no accounts.

    All but a page of another site that has its visitor's browser ask: a server that listens on this
    machine alone is still within reach of that. It may read no answer, so reading needs no care.

    Source: https://www.w3.org/TR/fetch-metadata/
    """
    if scope["method"] not in _READING and _FROM_ELSEWHERE in scope["headers"]:
        return Access.PUBLIC
    return Access.ADMIN


def check(endpoint: Endpoint, held: Access) -> None:
    """Let a caller with this level through.

    Raises:
        Forbidden: the table asks for more.
    """
    if held < endpoint.access:
        needed, has = endpoint.access.name.lower(), held.name.lower()
        raise Forbidden(f"{endpoint.operation}: needs '{needed}', the caller has '{has}'")
