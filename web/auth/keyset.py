"""Which keys of a published set (a JWKS) tokens can be verified with, and by which algorithm each.

The algorithm is what the key declares. One that declares none has the algorithm that its type and
curve allow, RS256 where they allow several. What a token says about algorithms is never asked.

A symmetric key is never usable: whoever reads the set could sign with it. Of an entry only the
public members are taken, so that a private key which was published by mistake is none here.

Source: RFC 7517, RFC 7518 section 3.1, RFC 8037 and RFC 9864.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.util import base64_to_int

from headrace.compiler.errors import HeadraceError

LEAST_RSA_BITS = 2048
MOST_RSA_BITS = 16384
"""What OpenSSL verifies with."""

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Mapping[tuple[Any, Any], Sequence[str]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
    ("OKP", "Ed448"): ("EdDSA", "Ed448"),
}
"""By type and curve of a key: what it can verify, first what is meant when it declares nothing."""


class Unusable(HeadraceError):
    """No token can be verified with an entry of the set."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and the one algorithm that it verifies with."""

    key: Key
    algorithm: str


def usable_keys(entries: Iterable[Any]) -> tuple[dict[str, SigningKey], list[str]]:
    """Return the usable keys by their id, and why each other entry was left out.

    Of several usable keys with one id the first counts.
    """
    usable: dict[str, SigningKey] = {}
    left_out: list[str] = []
    for position, entry in enumerate(entries):
        try:
            id, key = _read(entry)
            if id in usable:
                raise Unusable("its 'kid' is that of a key before it")
            usable[id] = key
        except Unusable as cause:
            left_out.append(f"keys[{position}]: {cause}")
    return usable, left_out


def _read(entry: Any) -> tuple[str, SigningKey]:
    """Return the id and the key of an entry, or raise `Unusable`."""
    if not isinstance(entry, dict):
        raise Unusable("no JSON object")
    kind, id, operations = entry.get("kty"), entry.get("kid"), entry.get("key_ops", ["verify"])
    if kind == "oct":
        raise Unusable("symmetric: whoever reads it could sign")
    if not isinstance(id, str):
        raise Unusable("no 'kid' that tokens could name")
    is_listed = isinstance(operations, list) and "verify" in operations
    if entry.get("use", "sig") != "sig" or not is_listed:
        raise Unusable("not for verifying signatures")
    algorithm = _algorithm(entry)
    return id, SigningKey(_imported(entry), algorithm)


def _algorithm(entry: Mapping[str, Any]) -> str:
    """Return what an entry declares, or what is meant when it declares nothing."""
    kind, curve, declared = entry.get("kty"), entry.get("crv"), entry.get("alg")
    name = (kind, None if kind == "RSA" else curve)
    known = _ALGORITHMS.get(name) if all(isinstance(part, str | None) for part in name) else None
    if known is None:
        raise Unusable("its type or curve is none that signs")
    if declared is None:
        return known[0]
    if declared not in known:
        raise Unusable(f"its 'alg' does not fit its type and curve, expected {' or '.join(known)}")
    return str(declared)


def _imported(entry: Mapping[str, Any]) -> Key:
    """Return the key of an entry whose type is known."""
    try:
        match entry["kty"]:
            case "EC":
                return ECKey.import_key(_members(entry, "crv", "x", "y"))
            case "OKP":
                return OKPKey.import_key(_members(entry, "crv", "x"))
        # Measured here: the library takes a short key, and warns of it in a way of its own.
        bits = _bits(entry.get("n"))
        if not LEAST_RSA_BITS <= bits <= MOST_RSA_BITS:
            raise Unusable(f"{bits:,} bits, expected {LEAST_RSA_BITS:,} to {MOST_RSA_BITS:,}")
        return RSAKey.import_key(_members(entry, "n", "e"))
    except (JoseError, ValueError) as cause:
        raise Unusable("malformed") from cause


def _bits(modulus: Any) -> int:
    """Return the length of a modulus, or raise `ValueError`."""
    if not isinstance(modulus, str):
        raise ValueError("no text")
    return base64_to_int(modulus).bit_length()


def _members(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the public members of an entry, and of those that say what it is for none."""
    return {name: entry[name] for name in ("kty", *names) if name in entry}
