"""An identity provider's side: keys, sets of them, and tokens of any shape, well signed or not."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64encode

ISSUER = "https://id.example.org/"
AUDIENCE = "pipelines"

KINDS: Mapping[str, tuple[type[Any], Any]] = {
    "RS256": (RSAKey, 2048),
    "RS384": (RSAKey, 2048),
    "RS512": (RSAKey, 2048),
    "PS256": (RSAKey, 2048),
    "PS384": (RSAKey, 2048),
    "PS512": (RSAKey, 2048),
    "ES256": (ECKey, "P-256"),
    "ES384": (ECKey, "P-384"),
    "ES512": (ECKey, "P-521"),
    "EdDSA": (OKPKey, "Ed25519"),
    "Ed25519": (OKPKey, "Ed25519"),
}
"""The algorithms of a provider, with what makes a key for each."""


@dataclass(frozen=True)
class Signer:
    """A key pair of a provider."""

    id: str = "k1"
    algorithm: str = "RS256"

    @property
    def key(self) -> Key:
        """The private key: the same for the same signer."""
        return _generated(self.id, *KINDS[self.algorithm])

    def entry(self, **changes: Any) -> dict[str, Any]:
        """Return what is published of it; a member that is None is left out."""
        described = {"kid": self.id, "alg": self.algorithm, "use": "sig"}
        entry = {**self.key.as_dict(private=False), **described, **changes}
        return {name: value for name, value in entry.items() if value is not None}

    def header(self, **changes: Any) -> dict[str, Any]:
        """Return the header of its tokens; a member that is None is left out."""
        header = {"alg": self.algorithm, "typ": "JWT", "kid": self.id, **changes}
        return {name: value for name, value in header.items() if value is not None}

    def token(self, claims: Any, header: Any = None) -> str:
        """Return a token that it has signed, whatever header and claims say.

        Bytes stand for themselves.
        """
        return signed(self.key, self.algorithm, header or self.header(), claims)


@cache
def _generated(_: str, kind: type[Any], size: Any) -> Key:
    key: Key = kind.generate_key(size)
    return key


def published(*entries: Any) -> bytes:
    """Return the set of keys as a provider answers it."""
    return json.dumps({"keys": list(entries)}).encode()


def claims_of(now: float, **changes: Any) -> dict[str, Any]:
    """Return claims that are good now, for five minutes; one that is None is left out."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(now) + 300, **changes}
    return {name: value for name, value in good.items() if value is not None}


def signed(key: Key, algorithm: str, header: Any, claims: Any) -> str:
    """Return a token, signed by an algorithm that its header need not tell."""
    said = f"{part(header)}.{part(claims)}"
    signature = JWSRegistry.algorithms[algorithm].sign(said.encode(), key)
    return f"{said}.{part(signature)}"


def signed_with_secret(secret: bytes, header: Any, claims: Any) -> str:
    """Return a token that is signed by HS256 with a text that everybody may know."""
    said = f"{part(header)}.{part(claims)}"
    # Not by the library, which refuses to take a public key for a secret.
    return f"{said}.{part(hmac.digest(secret, said.encode(), 'sha256'))}"


def part(value: Any) -> str:
    """Return bytes, or a value as JSON, as a segment of a token."""
    octets = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(octets).decode()
