"""The doors of a server, from its settings."""

from __future__ import annotations

from headrace.compiler.clock import Clock
from headrace.compiler.language.secrets import Secrets
from headrace.web.access import Doors, Open
from headrace.web.signin.accounts import Accounts
from headrace.web.signin.cookies import Cookies
from headrace.web.signin.doors import Guarded
from headrace.web.signin.sessions import Sessions
from headrace.web.signin.settings import JwtAuth, NoAuth, ServerSettings
from headrace.web.signin.verified import Tokens


async def opened(settings: ServerSettings, secrets: Secrets, clock: Clock) -> Doors:
    """Return the doors that settings ask for; they were found to be right.

    Raises:
        HeadraceError: the keys of the identity provider are not to be had.
    """
    if isinstance(settings.auth, NoAuth):
        return Open()
    tokens = await _tokens(settings.auth, clock) if isinstance(settings.auth, JwtAuth) else None
    return Guarded(
        clock,
        Accounts.of(settings.auth.accounts, secrets),
        Sessions(clock, settings.session.idle_secs),
        tokens=tokens,
        cookies=Cookies(settings.session.same_site),
    )


async def _tokens(auth: JwtAuth, clock: Clock) -> Tokens:
    from headrace.web.signin.tokens import fetched_tokens  # which no other server needs

    return await fetched_tokens(auth, clock)
