"""Tokens of an identity provider: who presents one, with which role, until when.

A token counts when all of this holds:

    kid                 names a published key
    signature           verifies with that key, by the algorithm of the key
    iss                 the configured issuer
    exp                 a number, no more than a minute ago
    nbf                 if it is there: a number, no more than a minute ahead
    aud                 where an audience is configured: it, or a list that holds it
    the claim of names  a text with something in it

Nothing else of it is looked at: a key, a certificate or an address that it brings along is neither
used nor fetched, and what it declares critical is not understood, so it is refused.

Why one is refused is logged and told nobody else.

Source: RFC 7515, RFC 7519 and RFC 8725.
"""

from __future__ import annotations

import json
import math
import secrets
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64decode

from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.schema.fields import is_blank
from headrace.web.auth.access import Access
from headrace.web.auth.keyset import MOST_RSA_BITS, SigningKey
from headrace.web.auth.settingsfile import JwtAuth
from headrace.web.auth.signingkeys import Keys
from headrace.web.auth.verified import TokenRefused, Verified

LEEWAY_SECONDS = 60
"""How far the provider's clock and ours may be apart."""
MOST_BYTES = 64 * 1024
"""Of a token: what the head of a request holds."""
MOST_HEADER_BYTES = 16 * 1024
MOST_NAME = 1000
"""Characters of a user name."""
MOST_REMEMBERED = 1000
"""Tokens that need not be verified once more: a client sends the same one with every request."""
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control characters, marks that nobody sees or that turn the text around them, ends of lines, and
halves of pairs, which no answer can hold."""
_LAST = 253_402_300_799
"""The end of the year 9999: a time that is later is taken for it, so that one can reckon with it."""


async def fetched_tokens(auth: JwtAuth, clock: Clock) -> Verifier:
    """Fetch the keys of a provider and return what verifies its tokens.

    Raises:
        NoKeys: there are none to be had.
    """
    keys = Keys(auth.jwks_url, clock)
    await keys.start()
    return Verifier(auth, keys, clock)


class _Wrong(HeadraceError):
    """Why a token identifies nobody: for the log alone."""


class Verifier:
    """Verifies the tokens of one provider."""

    def __init__(self, auth: JwtAuth, keys: Keys, clock: Clock) -> None:
        self._auth, self._keys, self._clock = auth, keys, clock
        self._remembered = _Remembered()

    def known(self, token: bytes) -> Verified | None:
        """Return whom a token stands for that was verified before and has not expired."""
        found = self._remembered.get(token, self._keys.published())
        return None if found is None or self._has_ended(found.ends_at) else found

    async def verify(self, token: str) -> Verified:
        """Return whom a token stands for. Waits for the provider where it names an unknown key.

        Raises:
            TokenRefused: it is no good, for whatever reason.
        """
        try:
            if len(token) > MOST_BYTES:
                raise _Wrong("it is too long")
            return await self._verified(token.encode("ascii"))
        except _Wrong as cause:
            reason = str(cause)
        # Whatever it is made of: no base64, no JSON, JSON that nests too deep, a bad signature.
        except (JoseError, ValueError, RecursionError) as cause:
            reason = (
                f"{type(cause).__name__}, it is malformed or not signed by the key that it names"
            )
        raise TokenRefused(why=reason)

    async def close(self) -> None:
        """End a fetch of keys that is going on."""
        await self._keys.close()

    async def _verified(self, token: bytes) -> Verified:
        known = self._remembered.get(token, self._keys.published())
        if known is None:
            known = self._identified(_claims(token, await self._key(token)))
            self._remembered.add(token, known)
        else:
            self._check_end(known.ends_at)
        return known

    async def _key(self, token: bytes) -> SigningKey:
        """Return the key that a token names."""
        header = _header(token)
        if "crit" in header:
            raise _Wrong("it declares something critical, which is not understood")
        id = header.get("kid")
        if not isinstance(id, str):
            raise _Wrong("it names no key")
        key = await self._keys.find(id)
        if key is None:
            raise _Wrong("it names a key that is not published")
        return key

    def _identified(self, claims: Mapping[str, Any]) -> Verified:
        """Return whom claims stand for that the provider has signed."""
        auth = self._auth
        if claims.get("iss") != auth.issuer:
            raise _Wrong("its issuer is another one")
        if auth.audience is not None and not _names(claims.get("aud"), [auth.audience]):
            raise _Wrong("it is for another audience")
        ends_at = _time(claims.get("exp"))
        self._check_end(ends_at)
        if "nbf" in claims and self._clock.seconds() + LEEWAY_SECONDS < _time(claims["nbf"]):
            raise _Wrong("it is not valid yet")
        return Verified(_name(claims.get(auth.username_claim)), self._access(claims), ends_at)

    def _access(self, claims: Mapping[str, Any]) -> Access:
        roles = self._auth.roles
        is_admin = roles is not None and _names(claims.get(roles.claim), roles.admin)
        return Access.ADMIN if is_admin else Access.READ

    def _check_end(self, ends_at: float) -> None:
        if self._has_ended(ends_at):
            raise _Wrong("it has expired")

    def _has_ended(self, ends_at: float) -> bool:
        return self._clock.seconds() >= ends_at + LEEWAY_SECONDS


class _Remembered:
    """The tokens that were verified last, for as long as the keys are what they were.

    Kept by a digest with a key of this process: a token is as good as a password, and is not held.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._by_digest: dict[bytes, Verified] = {}
        self._keys: object = None

    def get(self, token: bytes, keys: object) -> Verified | None:
        """Return what a token was verified to be with these keys."""
        if keys is not self._keys:
            self._by_digest.clear()
            self._keys = keys
        return self._by_digest.get(self._digest(token))

    def add(self, token: bytes, who: Verified) -> None:
        """Remember what a token is; the one that was verified the longest ago makes room."""
        if len(self._by_digest) >= MOST_REMEMBERED:
            del self._by_digest[next(iter(self._by_digest))]
        self._by_digest[self._digest(token)] = who

    def _digest(self, token: bytes) -> bytes:
        return blake2b(token, key=self._secret, digest_size=32).digest()


class _OneAlgorithm(JWSRegistry):
    """What the library is to take: one algorithm, headers it does not know, and long ones."""

    max_header_length = MOST_HEADER_BYTES
    max_signature_length = MOST_RSA_BITS // 6 + 1

    def __init__(self, algorithm: str) -> None:
        super().__init__(algorithms=[algorithm], strict_check_header=False)

    def get_alg(self, name: str) -> Any:
        """Return the one algorithm.

        The library's own warns at each token that EdDSA is to be called Ed25519, which is up to the
        provider.
        """
        if self.allowed is None or name not in self.allowed:
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


_registry = cache(_OneAlgorithm)


def _header(token: bytes) -> Mapping[str, Any]:
    """Return the header of a token, of which nothing is proven."""
    segment, _, _ = token.partition(b".")
    return _object(urlsafe_b64decode(segment))


def _claims(token: bytes, key: SigningKey) -> Mapping[str, Any]:
    """Return what a token says, once its signature is verified."""
    signed = jws.deserialize_compact(token, key.key, registry=_registry(key.algorithm))
    return _object(signed.payload)


def _object(octets: bytes) -> Mapping[str, Any]:
    """Return a JSON object, or raise `ValueError`. A key that is there twice means nothing."""
    value = json.loads(octets.decode(), object_pairs_hook=_once)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _time(value: Any) -> int:
    """Return a time as whole seconds, rounded down."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        raise _Wrong("a time in it is absent or no number")
    whole: int = math.floor(value)
    return min(whole, _LAST)


def _names(claim: Any, wanted: Collection[str]) -> bool:
    """Return whether a claim is one of the texts, or a list that holds one."""
    found = claim if isinstance(claim, list) else [claim]
    return any(each in wanted for each in found)


def _name(value: Any) -> str:
    """Return a user name: a text with something in it, which can be shown."""
    if not isinstance(value, str) or is_blank(value) or len(value) > MOST_NAME:
        raise _Wrong("it names no user")
    if any(unicodedata.category(character) in _NOT_SHOWN for character in value):
        raise _Wrong("its user name has characters that cannot be shown")
    return value
