"""Who is signed in, signing in with a password or a token, and signing out.

Nothing that is posted here is logged or shown. Whoever may not sign in is told the same whatever was
wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Literal

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import NOBODY, Access, Caller
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.credentials import (
    LoginRequest,
    TokenLoginRequest,
    TokenRefused,
    WrongPassword,
)
from headrace.web.auth.origin import refuse_foreign
from headrace.web.bodies import MalformedBody, R, Request, record_of
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.service import Service, ThreadQueue

MOST_VALUES = 100
"""Of a body here: anybody may post it, and the dearest that others may post takes seconds to read."""
LARGEST = 8 * 1024
"""Bytes of a body with a name and a password."""
LARGEST_TOKEN = 64 * 1024
"""Bytes of a body with a token: as much as the header of a request could bring."""
_NOT_JSON = "here it cannot be read on"
_ROLES: Mapping[Access, Literal["admin", "read"]] = {Access.ADMIN: "admin", Access.READ: "read"}

SignedIn = tuple[Caller, float | None]
"""Who, and when that is over whatever happens, in seconds since 1970."""


class AuthDto(msgspec.Struct):
    """Who is signed in."""

    authentication_required: Annotated[
        bool,
        Meta(
            description="Whether the server asks who somebody is: if not, everybody may do everything."
        ),
    ]
    username: Annotated[str | None, Meta(description="Who is signed in; null: nobody.")]
    role: Annotated[
        Literal["admin", "read", None], Meta(description="What they may do; null: nobody is.")
    ]


async def who_am_i(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer who is signed in. Nobody is no failure, and neither is a credential that is no good."""
    authenticator, caller = service.authenticator, NOBODY
    if authenticator.is_guarded:
        with suppress(HeadraceError):
            caller = await authenticator.caller(req.scope)
    _tell(resp, caller, is_asked=authenticator.is_guarded)


async def login(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Sign in with the name and the password of an account."""

    async def verified(authenticator: Authentication, given: LoginRequest) -> SignedIn:
        caller = await authenticator.accounts.caller(given.username.text, given.password.text)
        if caller is None:
            raise WrongPassword
        return caller, None

    await _sign_in(service, req, resp, "login", LoginRequest, LARGEST, verified)


async def token_login(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Sign in with a token of the identity provider.

    A browser needs a session because what reads its event streams cannot send headers. It ends when the
    token does, without the leeway that a token itself has: with one that has just expired nobody gets a
    session that is over before it begins.
    """

    async def verified(authenticator: Authentication, given: TokenLoginRequest) -> SignedIn:
        if authenticator.tokens is None:
            raise TokenRefused(why="this server takes none")
        who = await authenticator.tokens.verify(given.token.text)
        if who.ends_at <= service.clock.seconds():
            raise TokenRefused(why="it has expired")
        return Caller(who.access, who.username), who.ends_at

    await _sign_in(service, req, resp, "tokenLogin", TokenLoginRequest, LARGEST_TOKEN, verified)


async def logout(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """End the session of the request, if it has one, and have the browser forget the cookie."""
    authenticator = service.authenticator
    if isinstance(authenticator, Authentication):
        headers = req.scope["headers"]
        with authenticator.attempt("logout", req.scope):
            authenticator.refuse_foreign_logout(headers)
        authenticator.drop_sessions(headers)
        resp.append_header("Set-Cookie", authenticator.cookies.cleared(headers))
    resp.status = falcon.HTTP_204


async def _sign_in(
    service: Service,
    req: Request,
    resp: falcon.asgi.Response,
    operation: str,
    record: type[R],
    most: int,
    verified: Callable[[Authentication, R], Awaitable[SignedIn]],
) -> None:
    """Answer with a new session for whom ``verified`` tells, in place of what the request had.

    A server that has no accounts says so, to what is a login.

    Raises:
        FromElsewhere: a page of another site has sent it, to sign its visitor in as somebody else.
        HeadraceError: see `_read`.
    """
    authenticator, caller = service.authenticator, NOBODY
    if isinstance(authenticator, Authentication):
        headers = req.scope["headers"]
        with authenticator.attempt(operation, req.scope):
            refuse_foreign(headers)
            given = await _read(req, record, service.logins, most)
            caller, ends_at = await verified(authenticator, given)
        authenticator.drop_sessions(headers)
        id = authenticator.sessions.open(caller, ends_at)
        resp.append_header("Set-Cookie", authenticator.cookies.holding(id, headers))
    else:
        await _read(req, record, service.logins, most)
    _tell(resp, caller, is_asked=authenticator.is_guarded)


async def _read(req: Request, record: type[R], turns: ThreadQueue, most: int) -> R:
    """Return a record that holds a secret, of which no refusal tells a value.

    Raises:
        falcon.HTTPError: it is too large, or says that it is something else than JSON.
        TooManyBodies: too many wait to be read.
        MalformedBody: it is not JSON, or holds too much of it. Told is where, and no word: it may be
            one of the secret.
        Refused: it is JSON, and not what was asked for.
    """
    try:
        return await record_of(req, record, "nobody was signed in", turns, MOST_VALUES, most)
    except MalformedBody as cause:
        told = [replace(each, message=_NOT_JSON, found=None) for each in cause.diagnostics]
    raise MalformedBody(told)  # with nothing of it behind


def _tell(resp: falcon.asgi.Response, caller: Caller, *, is_asked: bool) -> None:
    resp.data = encode(AuthDto(is_asked, caller.username, _ROLES.get(caller.access)))
    resp.set_header("Cache-Control", "no-store")


_ELSEWHERE = "A page of another site has sent it."


def _body(most: int) -> dict[int, Answer]:
    """Return what may be wrong with a body of at most so many bytes."""
    return BODY | refusals(_403=_ELSEWHERE, _413=f"The body is larger than {most // 1024} KiB.")


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/auth/me",
        operation="whoAmI",
        tag="auth",
        access=Access.PUBLIC,
        summary="Tell who is signed in; never a failure.",
        responses={200: Answer("Who, or nobody; and whether the server asks at all.", AuthDto)},
        respond=who_am_i,
    ),
    Endpoint(
        method="POST",
        path="/api/auth/login",
        operation="login",
        tag="auth",
        access=Access.PUBLIC,
        summary="Sign in with a name and a password: the answer sets the session cookie.",
        body=LoginRequest,
        example={"username": "ann", "password": "correct horse battery staple"},
        responses={
            200: Answer("Signed in, or nobody has to be.", AuthDto),
            **_body(LARGEST),
            **refusals(
                _401="No account has this name and this password.",
                _422="The body is something else than a name and a password.",
                _503="Too many wait to sign in; try again later.",
            ),
        },
        respond=login,
    ),
    Endpoint(
        method="POST",
        path="/api/auth/token",
        operation="tokenLogin",
        tag="auth",
        access=Access.PUBLIC,
        summary="Sign in with a token of the identity provider: the answer sets the session cookie.",
        body=TokenLoginRequest,
        example={"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"},
        responses={
            200: Answer("Signed in until the token ends, or nobody has to be.", AuthDto),
            **_body(LARGEST_TOKEN),
            **refusals(
                _401="The token is not accepted, or the server takes none.",
                _422="The body is something else than a token.",
            ),
        },
        respond=token_login,
    ),
    Endpoint(
        method="POST",
        path="/api/auth/logout",
        operation="logout",
        tag="auth",
        access=Access.READ,
        takes_anybody=True,
        summary="End the session, on every machine that has a copy of its cookie.",
        responses={
            204: Answer("Nobody is signed in with it, if anybody was."),
            **refusals(_403=_ELSEWHERE, _500=BODY[500].meaning),
        },
        respond=logout,
    ),
)
