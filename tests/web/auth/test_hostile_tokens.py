"""Tokens that are to be nobody, however they are presented: 401, in one text, and nobody is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwe
from joserfc.jwk import RSAKey

from tests.peer import peer, replies
from tests.virtual import virtual
from tests.web.auth.guarding import JWT, guarded
from tests.web.auth.issuing import (
    ISSUER,
    Signer,
    claims_of,
    part,
    published,
    signed,
    signed_with_secret,
)

NOW = 1_767_225_600
"""Where virtual time begins."""
RSA, EC, OTHER = Signer("rsa", "RS256"), Signer("ec", "ES256"), Signer("other", "RS256")
MALLORY = Signer("mallory", "RS256")
ELSEWHERE = "https://mallory.example/"


def good(**changes: Any) -> dict[str, Any]:
    return claims_of(NOW, **changes)


def of(claims: Any = None, **header: Any) -> str:
    """Return a token that is signed by a published key, with claims that are good unless they are given."""
    return RSA.token(good() if claims is None else claims, RSA.header(**header))


def forged(**header: Any) -> str:
    """Return a token that says to be signed by a published key, and is signed by somebody else's."""
    return signed(MALLORY.key, "RS256", RSA.header(**header), good())


def unsigned(alg: str, signature: str = "") -> str:
    return f"{part({'alg': alg, 'kid': 'rsa'})}.{part(good())}.{signature}"


def by_public_key(form: str) -> str:
    """Return a token that is signed with what everybody can read, as if that were a secret."""
    assert isinstance(RSA.key, RSAKey)
    public = {
        "PEM": RSA.key.as_pem(private=False),
        "PEM, stripped": RSA.key.as_pem(private=False).strip(),
        "DER": RSA.key.as_der(private=False),
        "JWK": json.dumps(RSA.entry()).encode(),
        "modulus": RSA.entry()["n"].encode(),
    }
    return signed_with_secret(public[form], RSA.header(alg="HS256"), good())


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def encrypted() -> str:
    header = {"alg": "RSA-OAEP", "enc": "A128GCM", "kid": "rsa"}
    public = RSAKey.import_key(RSA.key.as_dict(private=False))
    return jwe.encrypt_compact(header, json.dumps(good()).encode(), public)


def signed_payload_as_it_is(**header: Any) -> str:
    """Return a token whose payload is not encoded (RFC 7797)."""
    claims = json.dumps(good()).encode()
    said = f"{part(RSA.header(b64=False, **header))}.".encode() + claims
    from joserfc.jws import JWSRegistry

    signature = JWSRegistry.algorithms["RS256"].sign(said, RSA.key)
    return f"{said.decode()}.{part(signature)}"


ATTACKS: dict[str, Callable[[], str]] = {
    "alg none": lambda: unsigned("none"),
    "alg None": lambda: unsigned("None"),
    "alg NONE with a signature": lambda: unsigned("NONE", of().rpartition(".")[2]),
    "alg none, signed": lambda: of(alg="none"),
    "no alg": lambda: of(alg=None),
    "alg empty": lambda: of(alg=""),
    "alg a list": lambda: of(alg=["RS256"]),
    "alg an object": lambda: of(alg={}),
    "alg in small letters": lambda: of(alg="rs256"),
    **{
        f"HS256 signed with the public key, {form}": lambda form=form: by_public_key(form)
        for form in ("PEM", "PEM, stripped", "DER", "JWK", "modulus")
    },
    "HS256 signed with nothing": lambda: signed_with_secret(b"x", RSA.header(alg="HS256"), good()),
    "another key's kid": lambda: OTHER.token(good(), OTHER.header(kid="rsa")),
    "a key of another type": lambda: EC.token(good(), EC.header(kid="rsa")),
    "RS512 for an RS256 key": lambda: signed(RSA.key, "RS512", RSA.header(alg="RS512"), good()),
    "RS512 that says RS256": lambda: signed(RSA.key, "RS512", RSA.header(), good()),
    "PS256 for an RS256 key": lambda: signed(RSA.key, "PS256", RSA.header(alg="PS256"), good()),
    "a key that is not published": lambda: MALLORY.token(good()),
    "somebody else's signature": forged,
    "no kid": lambda: of(kid=None),
    "kid null": lambda: RSA.token(good(), {**RSA.header(), "kid": None}),
    "kid a number": lambda: of(kid=0),
    "kid an object": lambda: of(kid={"kid": "rsa"}),
    "kid a list": lambda: of(kid=["rsa"]),
    "kid true": lambda: of(kid=True),
    "kid a path": lambda: of(kid="../../../../dev/null"),
    "kid SQL": lambda: of(kid="rsa' OR '1'='1"),
    "kid with a zero byte": lambda: of(kid="rsa\x00"),
    "kid of 8 KiB": lambda: of(kid="k" * 8192),
    "kid half a pair": lambda: of(kid="\ud800"),
    "a key of its own": lambda: forged(jwk=MALLORY.entry(kid="rsa")),
    "a key of its own, without kid": lambda: forged(jwk=MALLORY.entry(), kid=None),
    "a url of keys": lambda: forged(jku=ELSEWHERE),
    "a url of keys, and a new kid": lambda: MALLORY.token(good(), MALLORY.header(jku=ELSEWHERE)),
    "a url of a certificate": lambda: forged(x5u=ELSEWHERE),
    "a certificate": lambda: forged(x5c=[part(b"certificate")]),
    "crit that nobody knows": lambda: of(crit=["exp"], exp=NOW),
    "crit that is empty": lambda: of(crit=[]),
    "crit a number": lambda: of(crit=1),
    "crit null": lambda: RSA.token(good(), {**RSA.header(), "crit": None}),
    "payload not encoded": lambda: signed_payload_as_it_is(crit=["b64"]),
    "payload not encoded, not critical": lambda: signed_payload_as_it_is(),
    "payload encoded, said not to be": lambda: of(b64=False, crit=["b64"]),
    "encrypted": encrypted,
    "expired by 61 s": lambda: of(good(exp=NOW - 61)),
    "valid in 61 s": lambda: of(good(nbf=NOW + 61)),
    "no exp": lambda: of(good(exp=None)),
    "exp null": lambda: of({**good(), "exp": None}),
    "exp as text": lambda: of(good(exp=str(NOW + 300))),
    "exp true": lambda: of(good(exp=True)),
    "exp NaN": lambda: of(good(exp=float("nan"))),
    "exp Infinity": lambda: of(good(exp=float("inf"))),
    "exp 1e400": lambda: of(json.dumps(good(exp=7)).replace(": 7", ": 1e400").encode()),
    "exp of 5,000 digits": lambda: of(
        json.dumps(good(exp=7)).replace(": 7", ":" + "9" * 5000).encode()
    ),
    "exp a list": lambda: of(good(exp=[NOW + 300])),
    "wrong iss": lambda: of(good(iss="https://id.example.org")),
    "no iss": lambda: of(good(iss=None)),
    "iss a list": lambda: of(good(iss=[ISSUER])),
    "wrong aud": lambda: of(good(aud="other")),
    "no aud": lambda: of(good(aud=None)),
    "aud a list without it": lambda: of(good(aud=["other", 1])),
    "no user name": lambda: of(good(sub=None)),
    "user name empty": lambda: of(good(sub="")),
    "user name blank": lambda: of(good(sub="  ")),
    "user name a number": lambda: of(good(sub=7)),
    "user name a list": lambda: of(good(sub=["ann"])),
    "user name half a pair": lambda: of(good(sub="\ud800")),
    "a claim twice": lambda: of(json.dumps(good()).replace("{", '{"sub": "root", ', 1).encode()),
    "a header twice": lambda: RSA.token(
        good(), json.dumps(RSA.header()).replace("{", '{"kid": "ec", ', 1).encode()
    ),
    "claims that are a list": lambda: of([good()]),
    "claims that are a text": lambda: of("ann"),
    "claims that are nothing": lambda: of(b""),
    "claims in UTF-16": lambda: of(json.dumps(good()).encode("utf-16")),
    "claims with a byte order mark": lambda: of(b"\xef\xbb\xbf" + json.dumps(good()).encode()),
    "claims that nest": lambda: of(b'{"a": %b}' % nested(20_000)),
    "a header that nests": lambda: RSA.token(good(), b'{"a": %b}' % nested(6_000)),
    "a header that is a list": lambda: RSA.token(good(), ["alg", "kid"]),
    "a header that is null": lambda: RSA.token(good(), b"null"),
    "a header of 20 KiB": lambda: of(note="n" * 20_480),
    "60 KiB of points": lambda: "." * 60_000,
    "another payload": lambda: ".".join(
        [of().split(".")[0], part(good(sub="root")), of().split(".")[2]]
    ),
    "no signature": lambda: f"{of().rpartition('.')[0]}.",
    "two segments": lambda: of().rpartition(".")[0],
    "four segments": lambda: f"{of()}.e30",
    "padded": lambda: f"{of()}==",
    "in quotes": lambda: f'"{of()}"',
    "twice": lambda: f"{of()},{of()}",
    "nothing": lambda: "",
    "points": lambda: "..",
    "garbage": lambda: "garbage",
    "garbage in segments": lambda: "a.b.c",
    "beyond ASCII": lambda: of() + "\u00e9",
    "in JSON": lambda: json.dumps({"payload": part(good()), "signatures": []}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_token_is_refused_in_the_words_of_any_other(attack: str) -> None:
    @virtual
    async def presented_both_ways() -> None:
        async with peer() as provider:
            provider.answers = [replies(published(RSA.entry(), EC.entry(), OTHER.entry()))]
            async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
                token = ATTACKS[attack]()

                presented, login = await guard.presented(token), await guard.login(token)
                plain = await guard.presented("x"), await guard.login("x")

                assert (presented.status_code, login.status_code) == (401, 401)
                assert (presented.json, login.json) == tuple(answer.json for answer in plain)
                assert presented.headers.keys() == plain[0].headers.keys()
                assert not {"www-authenticate", "set-cookie"} & {*presented.headers, *login.headers}
                assert await guard.me(token) == {
                    "authentication_required": True,
                    "username": None,
                    "role": None,
                }

    presented_both_ways()


@virtual
async def test_a_token_that_is_larger_than_any_lets_nobody_in() -> None:
    token = of(good(note="n" * 786_432))
    async with peer() as provider:
        provider.answers = [replies(published(RSA.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            presented, login = await guard.presented(token), await guard.login(token)

    assert (presented.status_code, login.status_code) == (401, 413)


@virtual
async def test_nothing_is_fetched_that_a_token_points_to() -> None:
    keys = replies(published(RSA.entry()))
    async with peer() as provider, peer() as mallory:
        provider.answers = [keys, keys]
        mallory.answers = [replies(published(MALLORY.entry(), MALLORY.entry(kid="rsa")))] * 3
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            await guard.clock.sleep(60)  # from now on an unknown key is asked for
            for header in ("jku", "x5u", "iss"):
                for kid in ("mallory", "rsa"):
                    said = MALLORY.header(kid=kid, **{header: mallory.url("/jwks")})
                    login = await guard.login(MALLORY.token(good(), said))
                    assert login.status_code == 401

        assert len(provider.received) == 2
        assert not mallory.received


@virtual
async def test_what_the_attacks_change_is_all_that_is_wrong_with_them() -> None:
    """The same tokens without what is wrong are taken, so it is that which is refused."""
    fine = [
        of(),
        of(nonce="n", x5t="t"),
        of(good(exp=NOW - 59)),
        of(good(nbf=NOW + 60)),
        of(good(aud=["other", "pipelines"])),
        of(json.dumps(good()).encode()),
        EC.token(good()),
        OTHER.token(good()),
    ]
    async with peer() as provider:
        provider.answers = [replies(published(RSA.entry(), EC.entry(), OTHER.entry()))]
        async with guarded(**JWT, jwks_url=provider.url("/jwks")) as guard:
            for token in fine:
                assert (await guard.presented(token)).status_code == 200
                assert (await guard.me(token))["username"] == "ann"
