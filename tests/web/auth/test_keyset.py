"""Which keys of a published set can verify a token, and by which algorithm."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from joserfc.jwk import OctKey
from joserfc.util import int_to_base64

from headrace.web.auth.signingkeys import usable_keys
from tests.web.auth.issuing import KINDS, Signer

RSA, EC, OKP = Signer("r", "RS256"), Signer("e", "ES256"), Signer("o", "EdDSA")


def algorithm_of(entry: dict[str, Any]) -> str | None:
    """Return what the key of an entry verifies with, None for one that is left out."""
    usable, left_out = usable_keys([entry])
    assert len(usable) + len(left_out) == 1
    return usable[entry["kid"]].algorithm if usable else None


def why_not(entry: Any) -> str:
    usable, [reason] = usable_keys([entry])
    assert not usable
    return reason


@pytest.mark.parametrize("algorithm", KINDS)
def test_a_key_verifies_with_what_it_declares(algorithm: str) -> None:
    assert algorithm_of(Signer("k", algorithm).entry()) == algorithm


@pytest.mark.parametrize(
    ("algorithm", "meant"),
    [
        ("RS256", "RS256"),
        ("PS512", "RS256"),
        ("ES256", "ES256"),
        ("ES384", "ES384"),
        ("ES512", "ES512"),
        ("Ed25519", "EdDSA"),
    ],
)
def test_a_key_that_declares_nothing_has_the_algorithm_of_its_type_and_curve(
    algorithm: str, meant: str
) -> None:
    assert algorithm_of(Signer("k", algorithm).entry(alg=None)) == meant


@pytest.mark.parametrize(
    ("signer", "declared"),
    [
        (RSA, "ES256"),
        (RSA, "HS256"),
        (RSA, "none"),
        (RSA, "RSA-OAEP"),
        (RSA, ""),
        (RSA, ["RS256"]),
        (RSA, 256),
        (EC, "ES384"),
        (EC, "RS256"),
        (EC, "ECDH-ES"),
        (OKP, "ES256"),
        (OKP, "Ed448"),
    ],
)
def test_an_algorithm_that_does_not_fit_the_key_leaves_it_out(
    signer: Signer, declared: Any
) -> None:
    assert "'alg' does not fit its type and curve" in why_not(signer.entry(alg=declared))


def test_a_symmetric_key_is_never_usable() -> None:
    secret = OctKey.generate_key(256).as_dict()

    for declared in ("HS256", "RS256", None):
        entry = {**secret, "kid": "s", "alg": declared}
        assert why_not(entry) == "keys[0]: symmetric: whoever reads it could sign"


@pytest.mark.parametrize("use", ["enc", "", 1, ["sig"]])
def test_a_key_for_something_else_than_signatures_is_left_out(use: Any) -> None:
    assert why_not(RSA.entry(use=use)) == "keys[0]: not for verifying signatures"
    assert algorithm_of(RSA.entry(use=None)) == "RS256"


def test_where_a_key_lists_what_it_is_for_verifying_is_among_it() -> None:
    assert algorithm_of(RSA.entry(key_ops=["verify"])) == "RS256"
    assert why_not(RSA.entry(key_ops=["encrypt"])) == "keys[0]: not for verifying signatures"
    assert why_not(RSA.entry(key_ops=[])) == "keys[0]: not for verifying signatures"
    assert why_not(RSA.entry(key_ops="verify")) == "keys[0]: not for verifying signatures"


@pytest.mark.parametrize("id", [None, 1, ["r"], {"kid": "r"}])
def test_a_key_that_no_token_can_name_is_left_out(id: Any) -> None:
    assert why_not(RSA.entry(kid=id)) == "keys[0]: no 'kid' that tokens could name"


@pytest.mark.parametrize("bits", [512, 1024, 2047, 16385])
def test_an_rsa_key_that_is_too_short_or_too_long_is_left_out(bits: int) -> None:
    modulus = int_to_base64((1 << (bits - 1)) + 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert why_not(RSA.entry(n=modulus)) == (
            f"keys[0]: {bits:,} bits, expected 2,048 to 16,384"
        )


@pytest.mark.parametrize(
    "entry",
    [
        RSA.entry(n="AA=="),
        RSA.entry(n=None),
        RSA.entry(n=7),
        RSA.entry(n=""),
        RSA.entry(n="\ud800"),
        RSA.entry(e=None),
        RSA.entry(e="AQ"),
        EC.entry(x="AA"),
        EC.entry(y=None),
        EC.entry(y=[]),
        OKP.entry(x="AA"),
        OKP.entry(x={}),
    ],
)
def test_a_malformed_key_is_left_out(entry: Any) -> None:
    assert why_not(entry) == "keys[0]: malformed"


@pytest.mark.parametrize(
    "entry",
    [
        RSA.entry(kty="DSA"),
        RSA.entry(kty=None),
        RSA.entry(kty=["RSA"]),
        RSA.entry(kty="EC", crv=None),
        EC.entry(crv="P-192"),
        EC.entry(crv="secp256k1"),
        EC.entry(crv={"P-256": 1}),
        OKP.entry(crv="X25519"),
    ],
)
def test_a_type_or_curve_that_does_not_sign_is_left_out(entry: Any) -> None:
    assert why_not(entry) == "keys[0]: its type or curve is none that signs"


@pytest.mark.parametrize("entry", [None, 1, "key", [], [{}]])
def test_what_is_no_key_is_left_out(entry: Any) -> None:
    assert why_not(entry) == "keys[0]: no JSON object"


def test_of_a_private_key_that_was_published_only_the_public_half_is_taken() -> None:
    for signer in (RSA, EC, OKP):
        entry = {**signer.entry(), **signer.key.as_dict(private=True)}

        usable, left_out = usable_keys([entry])

        assert not left_out
        assert not usable[signer.id].key.is_private


def test_of_two_keys_with_one_id_the_first_that_is_usable_counts() -> None:
    entries = [
        RSA.entry(kid="k", use="enc"),
        EC.entry(kid="k"),
        RSA.entry(kid="k"),
        RSA.entry(kid="other"),
    ]

    usable, left_out = usable_keys(entries)

    assert {id: key.algorithm for id, key in usable.items()} == {"k": "ES256", "other": "RS256"}
    assert left_out == [
        "keys[0]: not for verifying signatures",
        "keys[2]: its 'kid' is that of a key before it",
    ]


def test_an_empty_set_has_no_usable_key() -> None:
    assert usable_keys([]) == ({}, [])
