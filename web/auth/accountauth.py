"""Authentication of a server with accounts: the ways in, and whom each of them lets in.

    session cookie   what a login sets; one that is worth nothing any more is passed over
    Bearer           a token of the identity provider, where there is one
    Basic            name and password of an account

The first that lets somebody in counts. What changes something and is let in by the cookie alone has to
be what no page of another site can send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Headers
from headrace.web.auth.access import NOBODY, READING, Caller, FromElsewhere, TurnedAway
from headrace.web.auth.accounts import MOST_KNOWN, Accounts, BasicHeaders
from headrace.web.auth.cookies import Cookies, session_ids
from headrace.web.auth.origin import refuse_foreign, refuse_forgeable
from headrace.web.auth.refusallog import RefusalLog
from headrace.web.auth.sessions import Sessions
from headrace.web.auth.verified import (
    SeveralCredentials,
    TokenRefused,
    TokenVerifier,
    Verified,
    WrongPassword,
)


class Authentication:
    """Lets in who has an account, a token or a session."""

    is_guarded = True

    def __init__(
        self,
        clock: Clock,
        accounts: Accounts,
        sessions: Sessions,
        *,
        tokens: TokenVerifier | None = None,
        cookies: Cookies | None = None,
    ) -> None:
        self.accounts, self.sessions, self.tokens = accounts, sessions, tokens
        self.cookies = cookies or Cookies()
        self._basic = BasicHeaders(accounts)
        self._refusals = RefusalLog(clock)
        self._clock = clock
        self._bearer = lru_cache(MOST_KNOWN)(self._caller_of)

    async def close(self) -> None:
        """Let go of what is open to the identity provider."""
        self._refusals.close()
        if self.tokens is not None:
            await self.tokens.close()

    async def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Return who sent a request."""
        try:
            caller = self._by_cookie(scope["headers"])
            if caller is None:
                return await self._by_header(scope)
            if scope["method"] not in READING:
                await self._refuse_forged(scope)
            return caller
        except TurnedAway as cause:
            self._refusals.add(scope, cause)
            raise

    @contextmanager
    def attempt(self, operation: str, scope: Mapping[str, Any]) -> Iterator[None]:
        """Return a context in which somebody signs in or out; who is turned away is told of."""
        try:
            yield
        except TurnedAway as cause:
            self._refusals.add(scope, cause)
            raise cause.during(operation) from cause

    def refuse_foreign_logout(self, headers: Headers) -> None:
        """Refuse to end a session for a page of another site. Without one there is nothing to end.

        Raises:
            FromElsewhere: see `refuse_foreign`.
        """
        if self._by_cookie(headers) is not None:
            refuse_foreign(headers)

    def drop_sessions(self, headers: Headers) -> None:
        """End the sessions that the cookies of a request stand for."""
        for id in session_ids(headers):
            self.sessions.drop(id)

    def _by_cookie(self, headers: Headers) -> Caller | None:
        for id in session_ids(headers):
            if (caller := self.sessions.find(id)) is not None:
                return caller
        return None

    async def _by_header(self, scope: Mapping[str, Any]) -> Caller:
        """Return whom the `Authorization` header lets in. Several of them let nobody in.

        Whatever stands between a client and this server may have gone by another one than we would.
        """
        presented = [value for name, value in scope["headers"] if name == b"authorization"]
        try:
            if len(presented) > 1:
                raise SeveralCredentials
            for value in presented:
                word, _, credentials = value.partition(b" ")
                scheme = word.lower()
                if scheme == b"basic":
                    return self._basic.known(credentials) or await self._by_password(credentials)
                if scheme == b"bearer":
                    known = self.tokens and self.tokens.known(credentials)
                    return self._bearer(known or await self._verified(credentials))
        except (SeveralCredentials, TokenRefused, WrongPassword) as cause:
            self._refusals.add(scope, cause)
        return NOBODY

    async def _by_password(self, credentials: bytes) -> Caller:
        caller = await self._basic.caller(credentials.strip())
        if caller is None:
            raise WrongPassword
        return caller

    async def _verified(self, credentials: bytes) -> Verified:
        if self.tokens is None:
            raise TokenRefused(why="this server takes none")
        return await self.tokens.verify(credentials.strip().decode("latin-1"))

    def _caller_of(self, verified: Verified) -> Caller:
        async def ended() -> None:
            await self._clock.sleep(max(0.0, verified.ends_at - self._clock.seconds()))

        return Caller(verified.access, verified.username, ended)

    async def _refuse_forged(self, scope: Mapping[str, Any]) -> None:
        """Refuse what another site may have sent, unless a header besides the cookie lets it in.

        Raises:
            FromElsewhere: see `refuse_forgeable`.
        """
        try:
            refuse_forgeable(scope)
        except FromElsewhere:
            if not (await self._by_header(scope)).access:
                raise
