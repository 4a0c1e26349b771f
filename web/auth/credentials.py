"""What is given to prove something: posted to sign in, found to be right or wrong, known again.

What it holds is shown nowhere: no error, no repr, no line of the log.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from marshmallow import ValidationError

from headrace.compiler.schema.fields import Strict, Text
from headrace.compiler.schema.records import Record, json_type, option
from headrace.compiler.text.diagnostics import Fault
from headrace.web.auth.access import Access, TurnedAway

T = TypeVar("T")

MOST_KNOWN = 1000
"""Credentials that need not be verified once more: a client sends the same one with every request."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SignInCredential:
    """A string that was given to prove something."""

    text: str

    def __repr__(self) -> str:
        return "Given(***)"


class NeverShown(Strict):
    """A field of which no error shows a value: a password may stand there."""

    def wrong(self, value: Any) -> ValidationError:
        """Return the error for a value of another type, which alone is told."""
        found = json_type(value)
        fault = Fault("wrong-type", f"expected {self.expects}, found {found}", found, self.expects)
        return ValidationError([fault])


class GivenText(NeverShown, Text):
    """A string of which no error tells more than that it is none."""

    def read(self, value: Any) -> SignInCredential:
        """Take a string."""
        return SignInCredential(super().read(value))


class LoginRequest(Record):
    """A name and a password."""

    username: SignInCredential = option(GivenText(), "The name of an account.")
    password: SignInCredential = option(GivenText(), "Its password.")


class TokenLoginRequest(Record):
    """A token."""

    token: SignInCredential = option(
        GivenText(), "What the identity provider has issued: the JWT alone."
    )


class TokenRefused(TurnedAway):
    """A token is not accepted. The text is the same whatever is wrong with it, which ``why`` tells."""

    def __init__(self, said: str = "the token is not accepted", *, why: str = "") -> None:
        super().__init__(said)
        self.reason = f"the token is not accepted: {why}"


class WrongPassword(TurnedAway):
    """No account has this name and this password. Which of them is wrong is not told."""

    reason = "wrong username or password"

    def __init__(self, said: str = reason) -> None:
        super().__init__(said)


class SeveralCredentials(TurnedAway):
    """A request has several `Authorization` headers. Whether one of them is right is not looked at."""

    reason = "the request has several Authorization headers"


@dataclass(frozen=True, slots=True)
class Verified:
    """Whom a token stands for, and until when: ``ends_at`` in seconds since 1970."""

    username: str
    access: Access
    ends_at: float


class KeyedDigest:
    """Digests with a key that nobody else has, all of one length: to compare two tells of no text."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def digest(self, credential: bytes) -> bytes:
        """Return the digest of a credential."""
        return blake2b(credential, key=self._key, digest_size=32).digest()


class KnownCredentials(KeyedDigest, dict[bytes, T]):
    """What credentials were found to be, by their `digest`, the last `MOST_KNOWN` of them.

    A token is as good as a password: neither is held.
    """

    def add(self, digest: bytes, found: T) -> None:
        """Keep what a credential is; the one that was verified the longest ago makes room."""
        if len(self) >= MOST_KNOWN:
            del self[next(iter(self))]
        self[digest] = found
