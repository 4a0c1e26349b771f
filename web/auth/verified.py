"""What was given to prove something, found to be right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headrace.web.auth.access import Access, TurnedAway


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


class TokenVerifier(Protocol):
    """What tells a good token from all others."""

    def known(self, token: bytes) -> Verified | None:
        """Return whom a token stands for that was verified before, None if that has to be done."""

    async def verify(self, token: str) -> Verified:
        """Return whom a token stands for.

        Raises:
            TokenRefused: it is no good, for whatever reason.
        """

    async def close(self) -> None:
        """Let go of what is open to the identity provider."""
