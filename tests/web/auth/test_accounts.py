"""Accounts: whom a name and a password let in, and what the time of an answer tells."""

from __future__ import annotations

import asyncio
import hmac
from base64 import b64encode

import argon2.low_level
import pytest

from headrace.compiler.schema.secrets import Secrets
from headrace.web.auth import credentials
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.accounts import Accounts, BasicHeaders, decoded
from headrace.web.auth.passwords import MOST_PASSWORD, Crowded
from headrace.web.auth.settingsfile import Account
from tests.web.auth.people import ADMIN, PASSWORDS, READER, accounts, made

ANN, BOB = Caller(Access.ADMIN, ADMIN), Caller(Access.READ, READER)
PAIRS = [
    (ADMIN, PASSWORDS[ADMIN], ANN),
    (READER, PASSWORDS[READER], BOB),
    (ADMIN, PASSWORDS[READER], None),
    (ADMIN, "", None),
    (ADMIN, PASSWORDS[ADMIN] + " ", None),
    (ADMIN, PASSWORDS[ADMIN][:-1], None),
    (ADMIN, PASSWORDS[ADMIN].upper(), None),
    ("Ann", PASSWORDS[ADMIN], None),
    ("eve", PASSWORDS[ADMIN], None),
    ("eve", "", None),
    ("", "", None),
    (ADMIN, "x" * (MOST_PASSWORD + 1), None),
    ("x" * 2000, PASSWORDS[ADMIN], None),
]
HASHED = [
    pytest.param({}, id="plain"),
    pytest.param({READER: made(PASSWORDS[READER])}, id="mixed"),
    pytest.param({name: made(each) for name, each in PASSWORDS.items()}, id="hashed"),
]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The lengths of what is compared."""
    lengths: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        lengths.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    return lengths


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The hashes that are computed."""
    hashes: list[bytes] = []
    real = argon2.low_level.verify_secret

    def counted(hash: bytes, *rest: object) -> bool:
        hashes.append(hash)
        return bool(real(hash, *rest))

    monkeypatch.setattr(argon2.low_level, "verify_secret", counted)
    return hashes


@pytest.mark.parametrize("hashed", HASHED)
@pytest.mark.parametrize(("username", "password", "caller"), PAIRS)
async def test_name_and_password_have_to_be_right(
    hashed: dict[str, str], username: str, password: str, caller: Caller | None
) -> None:
    assert await accounts(hashed=hashed).caller(username, password) == caller


@pytest.mark.parametrize(("username", "password", "_"), PAIRS[:-2])
async def test_every_attempt_compares_one_pair_of_digests_of_one_length(
    username: str, password: str, _: Caller | None, compared: list[tuple[int, int]]
) -> None:
    await accounts().caller(username, password)

    assert compared == [(32, 32)]


@pytest.mark.parametrize(("username", "password", "_"), PAIRS[:-2])
async def test_where_one_account_has_a_hash_every_attempt_computes_one(
    username: str, password: str, _: Caller | None, computed: list[bytes]
) -> None:
    await accounts(hashed={READER: made(PASSWORDS[READER])}).caller(username, password)

    assert len(computed) == 1


async def test_what_is_longer_than_any_password_costs_nothing(computed: list[bytes]) -> None:
    people = accounts(hashed={READER: made(PASSWORDS[READER])})

    assert await people.caller(READER, "x" * (MOST_PASSWORD + 1)) is None
    assert await people.caller("x" * 1001, PASSWORDS[READER]) is None
    assert computed == []


async def test_without_a_hash_none_is_computed(computed: list[bytes]) -> None:
    await accounts().caller(READER, "wrong")

    assert computed == []


async def test_the_hash_of_an_account_is_no_password() -> None:
    hash = made(PASSWORDS[READER])

    assert await accounts(hashed={READER: hash}).caller(READER, hash) is None


async def test_without_accounts_nobody_is_let_in() -> None:
    assert await Accounts({}).caller("", "") is None
    assert await Accounts({}).caller("ann", "x") is None


def test_no_password_and_no_hash_shows() -> None:
    hash = made(PASSWORDS[READER])
    people = accounts(hashed={READER: hash})

    shown = repr([vars(people), *people._holders.values()])
    assert PASSWORDS[ADMIN] not in shown
    assert hash not in shown


def test_passwords_are_resolved_and_hidden_from_then_on() -> None:
    lookup = Secrets({"BOB": "battery staple"}, {})
    people = {
        "ann": Account.load({"password": "correct horse", "role": "admin"}),
        "bob": Account.load({"password": "${BOB}"}),
        "eve": Account.load({"password_hash": made("open sesame")}),
    }

    found = Accounts.of(people, lookup)

    assert asyncio.run(found.caller("ann", "correct horse")) == Caller(Access.ADMIN, "ann")
    assert asyncio.run(found.caller("bob", "battery staple")) == Caller(Access.READ, "bob")
    assert asyncio.run(found.caller("eve", "open sesame")) == Caller(Access.READ, "eve")
    text = f"correct horse, battery staple and {made('open sesame')}"
    assert lookup.redact(text) == "***, ${BOB} and ***"
    assert "correct horse" not in repr(people)


def pair(text: str | bytes) -> bytes:
    return b64encode(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        (pair("ann:x"), ("ann", "x")),
        (pair("ann:"), ("ann", "")),
        (pair(":x"), ("", "x")),
        (pair("ann:x:y:"), ("ann", "x:y:")),
        (pair("änn:ß"), ("änn", "ß")),
        (pair("ann"), None),
        (pair(""), None),
        (b"", None),
        (pair(b"ann:\xff"), None),
        (b"ann:x", None),
        (b"YW5uOng", None),
        (b"YW5u Ong=", None),
        (b"YW5uOng=\xff", None),
        (b"YW5uOng=YW5uOng=", None),
        (b"*" * 60_000, None),
        (b"=" * 60_000, None),
    ],
)
def test_what_http_basic_holds(credentials: bytes, said: tuple[str, str] | None) -> None:
    assert decoded(credentials) == said


async def test_a_header_that_was_right_costs_no_second_hash(computed: list[bytes]) -> None:
    headers = BasicHeaders(accounts(hashed={READER: made(PASSWORDS[READER])}))
    right, wrong = pair(f"{READER}:{PASSWORDS[READER]}"), pair(f"{READER}:wrong")

    assert [await headers.caller(right) for _ in range(5)] == [BOB] * 5
    assert len(computed) == 1
    assert [await headers.caller(wrong) for _ in range(3)] == [None] * 3
    assert len(computed) == 4


async def test_requests_that_bring_the_same_header_at_once_wait_for_one_hash(
    computed: list[bytes],
) -> None:
    headers = BasicHeaders(accounts(hashed={READER: made(PASSWORDS[READER])}))
    right, wrong = pair(f"{READER}:{PASSWORDS[READER]}"), pair(f"{READER}:wrong")

    answers = await asyncio.gather(*(headers.caller(each) for each in [right, wrong] * 100))

    assert answers == [BOB, None] * 100
    assert len(computed) == 2


async def test_one_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    headers = BasicHeaders(accounts(hashed={READER: made(PASSWORDS[READER])}))
    right = pair(f"{READER}:{PASSWORDS[READER]}")
    first, second = (asyncio.ensure_future(headers.caller(right)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()
    assert await second == BOB


async def test_what_is_known_is_bounded_and_is_no_credential(monkeypatch) -> None:
    monkeypatch.setattr(credentials, "MOST_KNOWN", 3)
    headers = BasicHeaders(Accounts({f"u{n}": (Access.READ, "x", False) for n in range(9)}))

    for n in range(9):
        assert await headers.caller(pair(f"u{n}:x")) == Caller(Access.READ, f"u{n}")
        assert len(headers._known) <= 3
    assert pair("u8:x") not in headers._known
    assert headers._verifying == {}


async def test_attempts_that_fail_push_nobody_out(monkeypatch, computed: list[bytes]) -> None:
    monkeypatch.setattr(credentials, "MOST_KNOWN", 3)
    headers = BasicHeaders(accounts(hashed={READER: made(PASSWORDS[READER])}))
    right = pair(f"{READER}:{PASSWORDS[READER]}")
    await headers.caller(right)
    for n in range(4):
        await headers.caller(pair(f"{READER}:{n}"))

    computed.clear()
    assert await headers.caller(right) == BOB
    assert computed == []


async def test_many_different_attempts_are_turned_away_and_those_who_are_known_are_not() -> None:
    headers = BasicHeaders(accounts(hashed={READER: made(PASSWORDS[READER])}))
    right = pair(f"{READER}:{PASSWORDS[READER]}")
    await headers.caller(right)

    attack = [asyncio.ensure_future(headers.caller(pair(f"{READER}:{n}"))) for n in range(50)]
    await asyncio.sleep(0)

    assert await headers.caller(right) == BOB
    answers = await asyncio.gather(*attack, return_exceptions=True)
    turned_away = [answer for answer in answers if isinstance(answer, Crowded)]
    assert len(turned_away) == 17  # one at work and 32 waiting
    assert answers.count(None) == 33
