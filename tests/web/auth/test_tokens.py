"""What makes a token somebody: its key, its issuer, its time, its audience, its name and its role."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import VirtualLoop, run_virtual
from headrace.web.auth.access import Access
from headrace.web.auth.credentials import TokenRefused, Verified
from headrace.web.auth.tokens import LEEWAY_SECONDS, MOST_NAME
from tests.web.auth.issuing import AUDIENCE, ISSUER, KINDS, Signer, claims_of
from tests.web.auth.tokens import NOW, SIGNER, token, verifying

ROLES = {"claim": "groups", "admin": ["operators", "owners"]}


def verified(token: str, **settings: Any) -> Verified | None:
    """Return whom a token stands for at `NOW`, None if it is refused."""

    async def main() -> Verified | None:
        async with verifying(**settings) as verifier:
            try:
                return await verifier.verify(token)
            except TokenRefused:
                return None

    return run_virtual(main)


def written(claim: str, value: str) -> str:
    """Return a good token but for a claim that stands there as it is written."""
    others = ",".join(
        f'"{name}":"{text}"'
        for name, text in {"iss": ISSUER, "sub": "ann"}.items()
        if name != claim
    )
    end = "" if claim == "exp" else f',"exp":{NOW + 300}'
    return SIGNER.token(f'{{{others}{end},"{claim}":{value}}}'.encode())


def test_a_good_token_is_somebody_until_it_expires() -> None:
    assert verified(token()) == Verified("ann", Access.READ, NOW + 300)


@pytest.mark.parametrize("algorithm", KINDS)
def test_tokens_verify_by_the_algorithm_of_every_kind_of_key(algorithm: str) -> None:
    async def main() -> Verified:
        signer = Signer("k", algorithm)
        async with verifying(signer) as verifier:
            return await verifier.verify(signer.token(claims_of(NOW)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_virtual(main).username == "ann"


def test_a_header_may_say_more_than_is_looked_at() -> None:
    certificates = ["MIIC" * 700] * 3
    header = SIGNER.header(x5c=certificates, nonce="n", typ="at+jwt", b64=True)

    assert verified(SIGNER.token(claims_of(NOW), header))


@pytest.mark.parametrize(
    ("exp", "is_good"),
    [
        (NOW + 1, True),
        (NOW, True),
        (NOW - 59, True),
        (NOW - 59.5, False),
        (NOW - LEEWAY_SECONDS, False),
        (NOW - 61, False),
        (0, False),
        (-1, False),
    ],
)
def test_a_token_may_have_expired_less_than_a_minute_ago(exp: float, is_good: bool) -> None:
    assert bool(verified(token(exp=exp))) is is_good


@pytest.mark.parametrize(
    ("nbf", "is_good"),
    [(NOW, True), (NOW + 60, True), (NOW + 61, False), (NOW + 60.9, True), (2**70, False)],
)
def test_a_token_may_be_valid_from_a_minute_ahead_on(nbf: float, is_good: bool) -> None:
    assert bool(verified(token(nbf=nbf))) is is_good


def test_when_a_token_was_issued_does_not_matter() -> None:
    assert verified(token(iat=NOW + 10_000))
    assert verified(token(iat="yesterday"))


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize(
    "value",
    [
        "null",
        "true",
        f'"{NOW + 300}"',
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "[]",
        "{}",
    ],
)
def test_a_time_is_a_number(claim: str, value: str) -> None:
    assert verified(written(claim, value)) is None


@pytest.mark.parametrize(
    ("exp", "ends_at"),
    [
        (f"{NOW + 9}.999", NOW + 9),
        (f"{NOW + 9}.0", NOW + 9),
        ("1.8e9", 1_800_000_000),
        ("1e300", 253_402_300_799),
        ("1" + "0" * 400, 253_402_300_799),
    ],
)
def test_a_session_may_last_until_the_whole_second_before(exp: str, ends_at: int) -> None:
    who = verified(written("exp", exp))

    assert who is not None
    assert (who.ends_at, type(who.ends_at)) == (ends_at, int)


def test_a_number_that_is_too_long_to_be_read_is_refused() -> None:
    assert verified(written("exp", "1" * 5000)) is None


@pytest.mark.parametrize(
    "iss", [None, "", "https://id.example.org", ISSUER.upper(), [ISSUER], {"iss": ISSUER}, 1]
)
def test_the_issuer_is_there_and_the_configured_one(iss: Any) -> None:
    assert verified(token(iss=iss)) is None


@pytest.mark.parametrize(
    ("aud", "is_good"),
    [
        (AUDIENCE, True),
        ([AUDIENCE], True),
        (["other", 1, None, AUDIENCE], True),
        (None, False),
        ("", False),
        ("other", False),
        (AUDIENCE + "s", False),
        ([], False),
        (["other"], False),
        ([[AUDIENCE]], False),
        ({AUDIENCE: 1}, False),
        (1, False),
    ],
)
def test_the_audience_is_the_configured_one_or_a_list_that_holds_it(
    aud: Any, is_good: bool
) -> None:
    assert bool(verified(token(aud=aud), audience=AUDIENCE)) is is_good
    assert verified(token(aud=aud))


@pytest.mark.parametrize(
    "name",
    ["a", "ann@example.com", "Ännchen Østergård", "アン", "x" * MOST_NAME, " ann "],
)
def test_a_user_name_is_a_text(name: str) -> None:
    who = verified(token(sub=name))

    assert who is not None
    assert who.username == name


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        " ",
        "\u2003",
        7,
        True,
        ["ann"],
        {"name": "ann"},
        "x" * (MOST_NAME + 1),
        "ann\n",
        "a\x00",
        "\x1b[2J",
        "\x85",
        "\ud800",
        "ann\u200b",
        "\u202egnna",
        "a\u2028b",
        "a\u2029b",
        "\ufeffann",
    ],
)
def test_what_is_no_user_name_is_refused(name: Any) -> None:
    assert verified(token(sub=name)) is None


def test_the_user_name_is_in_the_configured_claim() -> None:
    who = verified(token(email="ann@example.com"), username_claim="email")

    assert who is not None
    assert who.username == "ann@example.com"
    assert verified(token(), username_claim="email") is None
    assert verified(token(user={"name": "ann"}), username_claim="user.name") is None
    assert verified(token(**{"user.name": "ann"}), username_claim="user.name")


@pytest.mark.parametrize(
    ("groups", "access"),
    [
        ("operators", Access.ADMIN),
        ("owners", Access.ADMIN),
        (["staff", "operators"], Access.ADMIN),
        ([1, None, ["x"], {}, "owners"], Access.ADMIN),
        (None, Access.READ),
        ("", Access.READ),
        ("Operators", Access.READ),
        ("operators,staff", Access.READ),
        ("operators staff", Access.READ),
        ([], Access.READ),
        (["staff"], Access.READ),
        ([["operators"]], Access.READ),
        ({"operators": True}, Access.READ),
        (True, Access.READ),
        (1, Access.READ),
    ],
)
def test_a_claim_that_is_or_holds_a_listed_value_makes_an_admin(
    groups: Any, access: Access
) -> None:
    who = verified(token(groups=groups), roles=ROLES)

    assert who is not None
    assert who.access == access


def test_without_roles_nobody_is_an_admin() -> None:
    who = verified(token(groups="operators", role="admin", admin=True))

    assert who is not None
    assert who.access == Access.READ


Present = Callable[[str], Verified | None]


@pytest.fixture(scope="module")
def present() -> Iterator[Present]:
    """Give `verified` with one provider for all that a property tries."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        verifying_all = verifying()
        verifier = runner.run(verifying_all.__aenter__())

        def presented(token: str) -> Verified | None:
            with suppress(TokenRefused):
                return runner.run(verifier.verify(token))
            return None

        yield presented
        runner.run(verifying_all.__aexit__(None, None, None))


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda octets: octets.decode("latin-1")))
def test_no_text_is_somebody(present: Present, text: str) -> None:
    assert present(text) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=8,
    ),
    st.sampled_from(
        ["alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5c", "iss", "exp", "nbf", "sub"]
    ),
)
def test_no_value_at_any_place_is_more_than_a_refusal(
    present: Present, value: Any, name: str
) -> None:
    if name in ("iss", "exp", "nbf", "sub"):
        present(SIGNER.token({**claims_of(NOW), name: value}))
    else:
        present(SIGNER.token(claims_of(NOW), {**SIGNER.header(), name: value}))


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_token_with_one_byte_changed_is_nobody(present: Present, place: int, byte: int) -> None:
    good = token()
    place %= len(good)
    changed = good[:place] + chr(byte) + good[place + 1 :]

    assert (present(changed) is None) is (changed != good)
