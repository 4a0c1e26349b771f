"""The signing keys of an identity provider: fetched at start, and again for a key nobody has seen.

at start                    one fetch; without a usable key the server does not start
a token names another key   one fetch, for which all who ask wait; at most one in a minute
the keys are an hour old    one fetch on the side, so that a key which was withdrawn stops to count
a fetch fails               the keys stay as they are

A token is verified with the key that it names, by the algorithm that the key declares. One that declares
none has the algorithm that its type and curve allow, RS256 where they allow several. What a token says
about algorithms is never asked. A symmetric key is never usable: whoever reads the set could sign with
it. Of an entry only the public members are taken, so that a private key which was published by mistake
is none here.

Source: RFC 7517, RFC 7518 section 3.1, RFC 8037 and RFC 9864.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.util import base64_to_int

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, HeadraceError
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.jsontext import NotJson, decode
from headrace.compiler.schema.redaction import HIDDEN, Redaction
from headrace.compiler.schema.urls import ParsedUrl

FETCH_SECONDS = 10
"""What one fetch may take, and so what a request waits for it at most."""
BETWEEN_SECONDS = 60
"""Between the beginnings of two fetches, the one at start included."""
OLD_SECONDS = 3600
"""After which keys are fetched anew although every token names one of them."""
MOST_BYTES = 1024 * 1024
"""Of a set of keys."""
_MOST_TOLD = 10
"""Entries of a set of which is told what is wrong with them."""
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

log = logging.getLogger("headrace.web")


class NoKeys(HeadraceError):
    """The provider does not answer with keys that tokens can be verified with."""

    def __init__(self, why: str) -> None:
        super().__init__(f"auth.jwks_url: {why}")


class Keys:
    """The keys that a provider publishes, by their ids."""

    def __init__(self, address: ParsedUrl, clock: Clock) -> None:
        self._address, self._clock = address, clock
        location, asks, _ = str(address).partition("?")
        # As it is told: some providers take a key in the query.
        self._name = f"{location}?{HIDDEN}" if asks else location
        self._published: Mapping[str, SigningKey] = {}
        self._tried_at = clock.monotonic()
        self._fetching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch them for the first time.

        Raises:
            NoKeys: there are none to be had.
        """
        self._published = await self._fetched()

    async def close(self) -> None:
        """End a fetch that is going on."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def published(self) -> Mapping[str, SigningKey]:
        """Return the keys as they were fetched last: another object after every fetch.

        Old ones are fetched anew, but nobody waits for that.
        """
        if self._age() >= OLD_SECONDS:
            self._begin()
        return self._published

    async def find(self, id: str) -> SigningKey | None:
        """Return the key of an id; for one that is not known, ask the provider again if it is time.

        Whoever stops waiting for the answer leaves it to the others.
        """
        known = self.published().get(id)
        if known is not None:
            return known
        if self._fetching is None and self._age() < BETWEEN_SECONDS:
            return None
        await asyncio.shield(self._fetching or self._begin())
        return self._published.get(id)

    def _age(self) -> float:
        return self._clock.monotonic() - self._tried_at

    def _begin(self) -> asyncio.Task[None]:
        self._tried_at = self._clock.monotonic()
        self._fetching = asyncio.create_task(self._fetch_again(), name="signing keys")
        return self._fetching

    async def _fetch_again(self) -> None:
        try:
            fetched = await self._fetched()
        except NoKeys as cause:
            log.warning("%s; the signing keys that were fetched before stay", cause)
        else:
            new, gone = fetched.keys() - self._published, self._published.keys() - fetched
            log.info("signing keys fetched again: %d new, %d withdrawn", len(new), len(gone))
            self._published = fetched
        finally:
            self._fetching = None

    async def _fetched(self) -> Mapping[str, SigningKey]:
        """Return what the provider publishes now, or raise `NoKeys`."""
        entries = _entries(await self._answer(), self._name)
        usable, left_out = usable_keys(entries)
        if left_out:
            log.info(
                "%s: %d of %d keys cannot verify tokens", self._name, len(left_out), len(entries)
            )
        for reason in left_out[:_MOST_TOLD]:
            log.debug("%s: %s", self._name, reason)
        if not usable:
            why = "; ".join(left_out[:_MOST_TOLD]) or "the set is empty"
            raise NoKeys(f"{self._name} publishes no key that can verify a token: {why}")
        return usable

    async def _answer(self) -> bytes:
        hidden, query = Redaction(), urlsplit(self._address.text).query
        for value in (query, *(value for _, value in parse_qsl(query))):
            hidden.hide(value)  # which the provider may repeat in what it answers
        client = HttpClient(
            self._address,
            clock=self._clock,
            hide=hidden.hide,
            redact=hidden,
            verb="GET",
            timeout_seconds=FETCH_SECONDS,
        )
        try:
            return await client.ask(b"", MOST_BYTES)
        except BatchFailed as cause:
            raise NoKeys(str(cause).replace(str(self._address), self._name)) from None
        finally:
            await client.close()


def _entries(answer: bytes, name: str) -> list[object]:
    """Return what is in the set that a provider of that name answered, or raise `NoKeys`."""
    try:
        found = decode(answer)
    except NotJson as cause:
        is_page = answer.lstrip().startswith(b"<")
        why = "HTML or XML, not JSON" if is_page else f"no JSON: {cause}"
        raise NoKeys(f"{name} answers {why}") from None
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise NoKeys(f"{name} answers JSON that is no set of keys: expected an object with 'keys'")
    return list(entries)


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
        if not isinstance(modulus := entry.get("n"), str):
            raise Unusable("malformed")
        bits = base64_to_int(modulus).bit_length()
        if not LEAST_RSA_BITS <= bits <= MOST_RSA_BITS:
            raise Unusable(f"{bits:,} bits, expected {LEAST_RSA_BITS:,} to {MOST_RSA_BITS:,}")
        return RSAKey.import_key(_members(entry, "n", "e"))
    except (JoseError, ValueError) as cause:
        raise Unusable("malformed") from cause


def _members(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the public members of an entry, and of those that say what it is for none."""
    return {name: entry[name] for name in ("kty", *names) if name in entry}
