"""Hashes of passwords: argon2id, each with the parameters that it was made with.

What a hash asks for is bounded, because anybody who tries a password has it computed: its memory, and
memory times passes, which is its time.

Source: RFC 9106, and the "PHC string format" that all of its tools write.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.compiler.text.diagnostics import Codes, Fault
from headrace.web.auth.access import TurnedAway

CODES: Codes = {
    "not-a-hash": "A password hash is none, or not one of argon2id.",
}

LEAST_KIB = 7 * 1024
MOST_KIB = 256 * 1024
MOST_WORK = 1024 * 1024
"""KiB times passes: about a second of one core."""
MOST_LANES = 16
MOST_PASSWORD = 4096
"""Characters of a password."""
MOST_WAITING = 32
"""Attempts that wait for their turn; one more is refused. Each of them is a tenth of a second."""

_ENCODED = re.compile(
    r"\$argon2id\$v=19\$m=(?P<m>[1-9]\d{0,9}),t=(?P<t>[1-9]\d{0,9}),p=(?P<p>[1-9]\d{0,9})"
    r"\$(?P<salt>[A-Za-z0-9+/]{11,86})\$(?P<hash>[A-Za-z0-9+/]{22,86})"
)
_FORM = (
    "an argon2id hash, '$argon2id$v=19$m=65536,t=3,p=1$...$...': 'headrace hash-password' makes one"
)


class Crowded(TurnedAway):
    """So many attempts to sign in wait already that one more would not have its turn in time."""

    reason = "too many attempts to sign in wait for their turn"

    def __init__(self, said: str = f"{reason}: try again later") -> None:
        super().__init__(said)


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to compute a hash: KiB of memory, passes over it, threads."""

    memory: int
    passes: int
    lanes: int

    @property
    def work(self) -> int:
        """Its time, more or less."""
        return self.memory * self.passes


OURS = Cost(64 * 1024, passes=3, lanes=1)
"""What new hashes are made with: a tenth of a second, of one core, so that the others are free."""


def hashed(password: str) -> str:
    """Return a new hash of a password."""
    from argon2 import PasswordHasher  # here and below: only who has hashes waits for it

    return PasswordHasher(OURS.passes, OURS.memory, OURS.lanes).hash(password)


def is_of(password: str, encoded: str) -> bool:
    """Return whether a hash is that of a password. Takes its time and its memory."""
    from argon2.exceptions import VerificationError
    from argon2.low_level import Type, verify_secret

    try:
        return verify_secret(encoded.encode(), password.encode(), Type.ID)
    except VerificationError:
        return False


def cost_of(encoded: str) -> Cost:
    """Return what it takes to compute a hash that `hash_faults` has nothing against."""
    found = _ENCODED.fullmatch(encoded)
    assert found is not None
    return Cost(int(found["m"]), int(found["t"]), int(found["p"]))


def hash_faults(encoded: str) -> Iterable[Fault]:
    """Yield what is wrong with a hash. It is not shown: it may be a password."""
    if _ENCODED.fullmatch(encoded) is None:
        yield Fault("not-a-hash", "this is not the argon2id hash of a password", expected=_FORM)
        return
    cost = cost_of(encoded)
    for what, unit, found, least, most in (
        ("memory", "KiB (m)", cost.memory, LEAST_KIB, MOST_KIB),
        ("threads", "(p)", cost.lanes, 1, MOST_LANES),
        ("work", "KiB times passes (m * t)", cost.work, 1, MOST_WORK),
    ):
        if not least <= found <= most:
            yield Fault(
                "out-of-range",
                f"the {what} of this hash, {found:,} {unit}, is out of bounds",
                found=str(found),
                expected=f"from {least:,} to {most:,}; 'headrace hash-password' keeps to that",
            )


def nobodys(encoded: Iterable[str]) -> str | None:
    """Return a hash of no password, as dear as the dearest of some hashes; None without any."""
    costs = [cost_of(each) for each in encoded]
    if not costs:
        return None
    dearest = max(costs, key=lambda cost: cost.work)
    salt, digest = (b64encode(secrets.token_bytes(size)).rstrip(b"=").decode() for size in (16, 32))
    parameters = f"m={dearest.memory},t={dearest.passes},p={dearest.lanes}"
    return f"$argon2id$v=19${parameters}${salt}${digest}"


class Verifying:
    """Compares passwords with hashes: one at a time, in a thread, and only so many wait.

    So an attack costs one core, the memory of one hash, and the patience of others who sign in with a
    password. Whoever is signed in notices nothing.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._attempts = 0

    async def is_of(self, password: str, encoded: str) -> bool:
        """Return whether a hash is that of a password.

        Raises:
            Crowded: `MOST_WAITING` wait for their turn.
        """
        if self._attempts > MOST_WAITING:  # one of them has its turn
            raise Crowded
        self._attempts += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(is_of, password, encoded)
        finally:
            self._attempts -= 1
