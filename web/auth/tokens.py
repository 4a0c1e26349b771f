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
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64decode

from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.schema.fields import is_blank
from headrace.web.auth.access import Access
from headrace.web.auth.credentials import KnownCredentials, TokenRefused, Verified
from headrace.web.auth.settingsfile import JwtAuth
from headrace.web.auth.signingkeys import MOST_RSA_BITS, Keys, SigningKey

LEEWAY_SECONDS = 60
"""How far the provider's clock and ours may be apart."""
MOST_BYTES = 64 * 1024
"""Of a token: what the head of a request holds."""
MOST_HEADER_BYTES = 16 * 1024
MOST_NAME = 1000
"""Characters of a user name."""
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
        self._remembered = KnownCredentials[Verified]()
        self._published: Mapping[str, SigningKey] = {}

    def known(self, token: bytes) -> Verified | None:
        """Return whom a token stands for that was verified before and has not expired."""
        found = self._known(self._remembered.digest(token))
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
        digest = self._remembered.digest(token)
        known = self._known(digest)
        if known is None:
            key = await self._key(token)
            signed = jws.deserialize_compact(token, key.key, registry=_registry(key.algorithm))
            known = self._identified(_object(signed.payload))
            self._remembered.add(digest, known)
        else:
            self._check_end(known.ends_at)
        return known

    def _known(self, digest: bytes) -> Verified | None:
        """Return what a token was verified to be, for as long as the keys are what they were."""
        if (published := self._keys.published()) is not self._published:
            self._remembered.clear()
            self._published = published
        return self._remembered.get(digest)

    async def _key(self, token: bytes) -> SigningKey:
        """Return the key that a token names."""
        header = _object(urlsafe_b64decode(token.partition(b".")[0]))  # nothing of it is proven
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
        roles = auth.roles
        is_admin = roles is not None and _names(claims.get(roles.claim), roles.admin)
        access = Access.ADMIN if is_admin else Access.READ
        return Verified(_name(claims.get(auth.username_claim)), access, ends_at)

    def _check_end(self, ends_at: float) -> None:
        if self._has_ended(ends_at):
            raise _Wrong("it has expired")

    def _has_ended(self, ends_at: float) -> bool:
        return self._clock.seconds() >= ends_at + LEEWAY_SECONDS


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
