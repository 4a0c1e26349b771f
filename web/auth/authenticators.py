"""Who lets callers in, made from the settings of a server."""

from __future__ import annotations

from headrace.compiler.clock import Clock
from headrace.compiler.schema.secrets import Secrets
from headrace.web.auth.access import Authenticator, OpenAccess
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.accounts import Accounts
from headrace.web.auth.cookies import Cookies
from headrace.web.auth.sessions import Sessions
from headrace.web.auth.settingsfile import JwtAuth, NoAuth, ServerSettings
from headrace.web.auth.verified import TokenVerifier


async def opened(settings: ServerSettings, secrets: Secrets, clock: Clock) -> Authenticator:
    """Return the authenticator that settings ask for; they were found to be right.

    Raises:
        HeadraceError: the keys of the identity provider are not to be had.
    """
    if isinstance(settings.auth, NoAuth):
        return OpenAccess()
    tokens = await _tokens(settings.auth, clock) if isinstance(settings.auth, JwtAuth) else None
    return Authentication(
        clock,
        Accounts.of(settings.auth.accounts, secrets),
        Sessions(clock, settings.session.idle_secs),
        tokens=tokens,
        cookies=Cookies(settings.session.same_site),
    )


async def _tokens(auth: JwtAuth, clock: Clock) -> TokenVerifier:
    from headrace.web.auth.tokens import fetched_tokens  # which no other server needs

    return await fetched_tokens(auth, clock)
