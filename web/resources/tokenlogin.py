"""`POST /api/auth/token`: a session for whoever presents a token of the identity provider.

A browser needs one because what reads its event streams cannot send headers. The session ends when
the token does, without the leeway that a token itself has: with one that has just expired nobody
gets a session that is over before it begins.
"""

from __future__ import annotations

import falcon.asgi

from headrace.web.asking import Request
from headrace.web.auth.access import Caller
from headrace.web.auth.doors import Guarded
from headrace.web.auth.requests import TokenLoginRequest
from headrace.web.auth.verified import TokenRefused, Verified
from headrace.web.resources.signin import asked, nobody_has_to, signed_in
from headrace.web.service import Service

LARGEST = 64 * 1024
"""Bytes of a body with a token: as much as the header of a request could bring."""


async def token_login(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Answer who the token stands for, with a cookie; on a server without accounts, that it has none."""
    match service.doors:
        case Guarded() as doors:
            with doors.attempt("tokenLogin", req.scope):
                who = await _presented(service, doors, req)
            signed_in(doors, req, resp, Caller(who.access, who.username), who.ends_at)
        case _:
            await nobody_has_to(service, req, resp, TokenLoginRequest, LARGEST)


async def _presented(service: Service, doors: Guarded, req: Request) -> Verified:
    given = await asked(service, req, TokenLoginRequest, LARGEST)
    if doors.tokens is None:
        raise TokenRefused(why="this server takes none")
    who = await doors.tokens.verify(given.token.text)
    if who.ends_at <= service.clock.seconds():
        raise TokenRefused(why="it has expired")
    return who
