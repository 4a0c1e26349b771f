"""People who sign in: accounts, what they send to prove it, and tokens that a provider has issued."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache

import argon2

from headrace.compiler.clock import Clock
from headrace.web.auth.access import Access
from headrace.web.auth.accountauth import Authentication
from headrace.web.auth.accounts import Accounts
from headrace.web.auth.credentials import TokenRefused, Verified
from headrace.web.auth.sessions import COOKIE, Cookies, Sessions

ADMIN, READER = "ann", "bob"
PASSWORDS = {ADMIN: "correct horse", READER: "battery: stäple"}
ROLES = {ADMIN: Access.ADMIN, READER: Access.READ}
JSON = {"Content-Type": "application/json"}


class Issued:
    """Tokens that were issued, each with whom it stands for."""

    def __init__(self, tokens: Mapping[str, Verified]) -> None:
        self._tokens = tokens
        self.is_closed = False

    def known(self, token: bytes) -> Verified | None:
        """Return nobody: nothing is remembered."""
        return None

    async def verify(self, token: str) -> Verified:
        """Return whom a token stands for."""
        if token not in self._tokens:
            raise TokenRefused
        return self._tokens[token]

    async def close(self) -> None:
        """Remember it."""
        self.is_closed = True


def accounts(*, hashed: Mapping[str, str] | None = None) -> Accounts:
    """Return the accounts; passwords in ``hashed`` stand for those of the same names."""
    given = {name: (ROLES[name], password, False) for name, password in PASSWORDS.items()}
    given |= {name: (ROLES[name], hash, True) for name, hash in (hashed or {}).items()}
    return Accounts(given)


def guarded(
    clock: Clock,
    *,
    idle: float = 3600,
    tokens: Issued | None = None,
    same_site: str = "strict",
    hashed: Mapping[str, str] | None = None,
) -> Authentication:
    """Return who lets these people in."""
    return Authentication(
        clock,
        accounts(hashed=hashed),
        Sessions(clock, idle),
        tokens=tokens,  # type: ignore[arg-type]  # what a test has issued stands for a provider
        cookies=Cookies(same_site),
    )


def basic(name: str, password: str | None = None, *, scheme: str = "Basic") -> dict[str, str]:
    """Return the header of somebody who sends name and password with every request."""
    pair = f"{name}:{PASSWORDS[name] if password is None else password}"
    return {"Authorization": f"{scheme} {b64encode(pair.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    """Return the header of somebody who sends a token."""
    return {"Authorization": f"Bearer {token}"}


def cookie(id: str) -> dict[str, str]:
    """Return the header of a browser that has a session."""
    return {"Cookie": f"{COOKIE}={id}"}


def session_of(set_cookie: str) -> str:
    """Return the id of a session from the cookie that an answer sets."""
    name, _, id = set_cookie.partition(";")[0].partition("=")
    assert name == COOKIE
    return id


@cache
def made(password: str) -> str:
    """Return a hash of a password with as little work as is allowed."""
    return argon2.PasswordHasher(time_cost=1, memory_cost=7168, parallelism=1).hash(password)
