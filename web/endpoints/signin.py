"""Who is signed in, and how one gets in and out."""

from __future__ import annotations

from headrace.web import examples
from headrace.web.auth.access import Access
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.resources import signin as answers
from headrace.web.resources import tokenlogin

_ELSEWHERE = "A page of another site has sent it."


def _body(most: int) -> dict[int, Answer]:
    """Return what may be wrong with a body of at most so many bytes."""
    too_large = f"The body is larger than {most // 1024} KiB."
    return {**BODY, **refusals(_403=_ELSEWHERE, _413=too_large)}


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/auth/me",
        operation="whoAmI",
        tag="auth",
        access=Access.PUBLIC,
        summary="Tell who is signed in; never a failure.",
        responses={200: Answer("Who, or nobody; and whether the server asks at all.", "AuthDto")},
        respond=answers.who_am_i,
    ),
    Endpoint(
        method="POST",
        path="/api/auth/login",
        operation="login",
        tag="auth",
        access=Access.PUBLIC,
        summary="Sign in with a name and a password: the answer sets the session cookie.",
        body="LoginRequest",
        example=examples.LOGIN,
        responses={
            200: Answer("Signed in, or nobody has to be.", "AuthDto"),
            **_body(answers.LARGEST),
            **refusals(
                _401="No account has this name and this password.",
                _422="The body is something else than a name and a password.",
                _503="Too many wait to sign in; try again later.",
            ),
        },
        respond=answers.login,
    ),
    Endpoint(
        method="POST",
        path="/api/auth/token",
        operation="tokenLogin",
        tag="auth",
        access=Access.PUBLIC,
        summary="Sign in with a token of the identity provider: the answer sets the session cookie.",
        body="TokenLoginRequest",
        example=examples.TOKEN_LOGIN,
        responses={
            200: Answer("Signed in until the token ends, or nobody has to be.", "AuthDto"),
            **_body(tokenlogin.LARGEST),
            **refusals(
                _401="The token is not accepted, or the server takes none.",
                _422="The body is something else than a token.",
            ),
        },
        respond=tokenlogin.token_login,
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
        respond=answers.logout,
    ),
)
