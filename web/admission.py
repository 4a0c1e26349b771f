"""Whether a caller may have an endpoint: the one place that compares the level of both."""

from __future__ import annotations

from typing import Any

from headrace.web.auth.access import (
    Authenticator,
    Caller,
    Forbidden,
    NotSignedIn,
    TurnedAway,
    let_in,
)
from headrace.web.endpoint import Endpoint


async def admitted(endpoint: Endpoint, authenticator: Authenticator, scope: dict[str, Any]) -> None:
    """Let whoever sent a request through to an endpoint; `caller_of` then tells who it is.

    Raises:
        NotSignedIn: the table asks for somebody who is signed in.
        Forbidden: the table asks for more than they may.
        TurnedAway: see `Authenticator`.
    """
    if endpoint.access and not endpoint.takes_anybody:
        try:
            caller = await authenticator.caller(scope)
        except TurnedAway as cause:
            raise cause.during(endpoint.operation) from cause
        let_in(scope, caller)
        check(endpoint, caller)


def check(endpoint: Endpoint, caller: Caller) -> None:
    """Let a caller through.

    Raises:
        NotSignedIn: the table asks for somebody who is signed in.
        Forbidden: the table asks for more than they may.
    """
    if caller.access >= endpoint.access:
        return
    if not caller.access:
        raise NotSignedIn(
            f"{endpoint.operation}: nobody is signed in, or the credential is not valid"
        )
    needed, has = endpoint.access.name.lower(), caller.access.name.lower()
    raise Forbidden(f"{endpoint.operation}: needs '{needed}', '{caller.username}' has '{has}'")
