"""Authentication of a server with accounts: the ways in, and whom each of them lets in.

    session cookie   what a login sets; one that is worth nothing any more is passed over
    Bearer           a token of the identity provider, where there is one
    Basic            name and password of an account

The first that lets somebody in counts. What changes something and is let in by the cookie alone has to
be what no page of another site can send.

Who is turned away is logged (`RefusalLog`): where from and why, with no name, no password, no token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Headers
from headrace.compiler.schema.secrets import Secrets
from headrace.web.auth.access import (
    NOBODY,
    Authenticator,
    Caller,
    FromElsewhere,
    OpenAccess,
    TurnedAway,
)
from headrace.web.auth.accounts import Accounts, BasicHeaders
from headrace.web.auth.credentials import (
    MOST_KNOWN,
    SeveralCredentials,
    TokenRefused,
    Verified,
    WrongPassword,
)
from headrace.web.auth.origin import refuse_foreign, refuse_forgeable
from headrace.web.auth.sessions import Cookies, Sessions, session_ids
from headrace.web.auth.settingsfile import JwtAuth, NoAuth, ServerSettings

if TYPE_CHECKING:
    from headrace.web.auth.tokens import Verifier

QUIET_SECONDS = 1.0

log = logging.getLogger("headrace.web")


async def opened(settings: ServerSettings, secrets: Secrets, clock: Clock) -> Authenticator:
    """Return the authenticator that settings ask for; they were found to be right.

    Raises:
        HeadraceError: the keys of the identity provider are not to be had.
    """
    if isinstance(settings.auth, NoAuth):
        return OpenAccess()
    tokens: Verifier | None = None
    if isinstance(settings.auth, JwtAuth):
        from headrace.web.auth.tokens import fetched_tokens  # which no other server needs

        tokens = await fetched_tokens(settings.auth, clock)
    return Authentication(
        clock,
        Accounts.of(settings.auth.accounts, secrets),
        Sessions(clock, settings.session.idle_secs),
        tokens=tokens,
        cookies=Cookies(settings.session.same_site),
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
        tokens: Verifier | None = None,
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
            try:
                refuse_forgeable(scope)
            except FromElsewhere:  # unless a header besides the cookie lets it in
                if not (await self._by_header(scope)).access:
                    raise
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
        found = (self.sessions.find(id) for id in session_ids(headers))
        return next((caller for caller in found if caller is not None), None)

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
                    if (caller := await self._basic.caller(credentials.strip())) is None:
                        raise WrongPassword
                    return caller
                if scheme == b"bearer":
                    if self.tokens is None:
                        raise TokenRefused(why="this server takes none")
                    verified = self.tokens.known(credentials) or await self.tokens.verify(
                        credentials.strip().decode("latin-1")
                    )
                    return self._bearer(verified)
        except (SeveralCredentials, TokenRefused, WrongPassword) as cause:
            self._refusals.add(scope, cause)
        return NOBODY

    def _caller_of(self, verified: Verified) -> Caller:
        async def ended() -> None:
            await self._clock.sleep(max(0.0, verified.ends_at - self._clock.seconds()))

        return Caller(verified.access, verified.username, ended)


class RefusalLog:
    """Logs who was turned away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._quiet: asyncio.TimerHandle | None = None
        self._untold = 0
        self._last = ""

    def add(self, scope: Mapping[str, Any], cause: TurnedAway) -> None:
        """Tell of a request (an ASGI scope) that was turned away, now or soon."""
        peer = scope.get("client")
        said = f"{peer[0] if peer else 'an unknown address'}: {cause.reason}"
        if self._quiet is None:
            log.warning("a sign-in was refused, from %s", said)
            self._be_quiet()
        else:
            self._untold += 1
            self._last = said

    def close(self) -> None:
        """Tell what is left to tell."""
        if self._quiet is not None:
            self._quiet.cancel()
            self._tell_others()

    def _be_quiet(self) -> None:
        self._quiet = self._clock.call_later(QUIET_SECONDS, self._over)

    def _over(self) -> None:
        if self._tell_others():
            self._be_quiet()

    def _tell_others(self) -> bool:
        """Tell of those that nothing was told of; return whether there were any."""
        count, self._untold, self._quiet = self._untold, 0, None
        if count == 1:
            log.warning("one more sign-in was refused, from %s", self._last)
        elif count:
            log.warning("%d more sign-ins were refused, the last from %s", count, self._last)
        return count > 0
