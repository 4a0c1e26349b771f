"""Accounts: names and passwords, compared so that the time it takes tells nothing.

A wrong password, a name that nobody has and a right one cost the same. Passwords are compared as keyed
digests, all of one length. Where one account has a hash, every attempt computes one, for other accounts
and for nobody the dearest of them: only accounts whose hashes differ in their parameters can be told
apart.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from headrace.compiler.schema.secrets import Secrets
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.credentials import KeyedDigest, KnownCredentials
from headrace.web.auth.passwords import MOST_PASSWORD, Verifying, nobodys
from headrace.web.auth.settingsfile import Account

MOST_NAME = 1000


@dataclass(frozen=True, slots=True)
class AccountHolder:
    """Who an account lets in, and for which password: its digest, or its hash. Neither is shown."""

    caller: Caller
    digest: bytes = field(repr=False)
    hash: str | None = field(default=None, repr=False)


class Accounts:
    """The accounts of a server."""

    def __init__(self, accounts: Mapping[str, tuple[Access, str, bool]]) -> None:
        """Take role, password and whether that is a hash, by name."""
        self._digests = KeyedDigest()
        self._holders = {
            name: self._holder(Caller(access, name), password, is_hash=is_hash)
            for name, (access, password, is_hash) in accounts.items()
        }
        self._nobody = self._holder(Caller(Access.PUBLIC), "", is_hash=True)
        self._nobodys = nobodys(each.hash for each in self._holders.values() if each.hash)
        self._verifying = Verifying()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._holders)

    @classmethod
    def of(cls, settings: Mapping[str, Account], lookup: Secrets) -> Self:
        """Return accounts that were found to be right, with what their secrets resolve to.

        No text hides those better than one that never has them; what a library makes of them is
        redacted.
        """
        found = {}
        for name, account in settings.items():
            value = lookup.resolve(account.secret)
            lookup.redact.hide(value)
            found[name] = (account.access, value, account.password_hash is not None)
        return cls(found)

    async def caller(self, username: str, password: str) -> Caller | None:
        """Return whom a name and a password let in, None for nobody.

        Raises:
            Crowded: too many wait for the same.
        """
        if len(username) > MOST_NAME or len(password) > MOST_PASSWORD:
            return None
        holder = self._holders.get(username, self._nobody)
        is_right = hmac.compare_digest(holder.digest, self._digests.digest(password.encode()))
        if self._nobodys is not None:
            is_right |= await self._verifying.is_of(password, holder.hash or self._nobodys)
        return holder.caller if is_right else None

    def _holder(self, caller: Caller, password: str, *, is_hash: bool) -> AccountHolder:
        # Nothing has a random digest.
        digest = secrets.token_bytes(32) if is_hash else self._digests.digest(password.encode())
        return AccountHolder(caller, digest, (password or None) if is_hash else None)


class BasicHeaders:
    """Whom the `Authorization` headers of HTTP Basic let in.

    One that was right is known again by a keyed digest, so that only its first request costs a hash.
    Requests that bring the same one meanwhile wait for that. Accounts never change, so nothing of it ever
    gets old.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._known = KnownCredentials[Caller]()
        self._verifying: dict[bytes, asyncio.Task[Caller | None]] = {}

    async def caller(self, credentials: bytes) -> Caller | None:
        """Return whom what follows the word `Basic` lets in, None for nobody.

        Raises:
            Crowded: too many wait for the same.
        """
        digest = self._known.digest(credentials)
        if (caller := self._known.get(digest)) is not None:
            return caller
        task = self._verifying.get(digest)
        if task is None:
            task = asyncio.ensure_future(self._verified(digest, credentials))
            self._verifying[digest] = task
        return await asyncio.shield(task)

    async def _verified(self, digest: bytes, credentials: bytes) -> Caller | None:
        try:
            pair = decoded(credentials)
            caller = None if pair is None else await self._accounts.caller(*pair)
        finally:
            del self._verifying[digest]
        if caller is not None:
            self._known.add(digest, caller)
        return caller


def decoded(credentials: bytes) -> tuple[str, str] | None:
    """Return name and password of HTTP Basic, None where there are none.

    Source: RFC 7617.
    """
    try:
        text = b64decode(credentials, validate=True).decode()
    except (NotBase64, UnicodeError):
        return None
    username, colon, password = text.partition(":")
    return (username, password) if colon else None
