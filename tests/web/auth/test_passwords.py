"""Hashes of passwords: made, recognised, and bounded in what they cost."""

from __future__ import annotations

import asyncio
import threading

import argon2
import pytest

from headrace.web.auth import passwords as subject
from headrace.web.auth.passwords import (
    Crowded,
    Verifying,
    cost_of,
    hash_faults,
    hashed,
    is_of,
    nobodys,
)
from tests.web.auth.people import made

SALT, DIGEST = "c29tZSBzYWx0IDEyMzQ", "kzUTqbjWzgDZIJcgNVvDmpc0DOR5hRbkyEJlPJdYgDc"


def encoded(memory: int = 65536, passes: int = 3, lanes: int = 1) -> str:
    return f"$argon2id$v=19$m={memory},t={passes},p={lanes}${SALT}${DIGEST}"


def test_a_new_hash_is_that_of_its_password_and_of_no_other() -> None:
    hash = hashed("correct hörse")

    assert [*hash_faults(hash)] == []
    assert is_of("correct hörse", hash)
    assert not is_of("correct horse", hash)
    assert not is_of("", hash)
    assert hashed("correct hörse") != hash


def test_hashes_of_other_tools_are_taken() -> None:
    for hasher in (argon2.PasswordHasher(), argon2.PasswordHasher(2, 7168, 1, 16, 8)):
        hash = hasher.hash("x")
        assert [*hash_faults(hash)] == []
        assert is_of("x", hash)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        "5f4dcc3b5aa765d61d8327deb882cf99",
        "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
        encoded().replace("argon2id", "argon2i"),
        encoded().replace("argon2id", "argon2d"),
        encoded().replace("v=19", "v=16"),
        encoded().replace("v=19$", ""),
        encoded().replace("m=65536,t=3", "t=3,m=65536"),
        encoded().replace("t=3", "t=0"),
        encoded().replace("t=3", "t=03"),
        encoded().replace("t=3", "t=-3"),
        encoded().replace("t=3", "t=3.0"),
        encoded().replace("t=3", "t=99999999999"),
        encoded() + "=",
        encoded() + "\n",
        encoded() + "$",
        " " + encoded(),
        encoded().replace(DIGEST, ""),
        encoded().replace(DIGEST, "a" * 100),
        encoded().replace(SALT, "short"),
        encoded().replace(SALT, "-" * 22),
    ],
)
def test_what_is_no_hash_of_argon2id_is_refused_and_not_shown(text: str) -> None:
    [fault] = hash_faults(text)

    assert fault.code == "not-a-hash"
    assert fault.found is None
    assert fault.message == "this is not the argon2id hash of a password"


@pytest.mark.parametrize(
    ("hash", "codes"),
    [
        (encoded(7 * 1024, 1), 0),
        (encoded(7 * 1024 - 1, 1), 1),
        (encoded(256 * 1024, 4), 0),
        (encoded(256 * 1024, 5), 1),
        (encoded(256 * 1024 + 1, 1), 1),
        (encoded(8 * 1024, 128), 0),
        (encoded(8 * 1024, 129), 1),
        (encoded(lanes=16), 0),
        (encoded(lanes=17), 1),
        (encoded(9_999_999_999, 9_999_999_999, 9_999_999_999), 3),
    ],
)
def test_what_costs_too_much_or_too_little_is_refused(hash: str, codes: int) -> None:
    assert [fault.code for fault in hash_faults(hash)] == ["out-of-range"] * codes


def test_the_hash_of_nobody_is_no_hash_of_anything_and_as_dear_as_the_dearest() -> None:
    cheap, dear = encoded(8192, 1), encoded(7168, 2)
    nobody = nobodys([cheap, dear])

    assert nobody is not None
    assert [*hash_faults(nobody)] == []
    assert cost_of(nobody) == cost_of(dear)
    assert not is_of("", nobody)
    assert nobody != nobodys([cheap, dear])
    assert nobodys([]) is None


async def test_one_hash_is_computed_at_a_time_and_only_so_many_wait(monkeypatch) -> None:
    monkeypatch.setattr(subject, "MOST_WAITING", 3)
    meeting = threading.Barrier(2, timeout=0.05)
    met: list[bool] = []

    def met_another(*_: object) -> bool:
        try:
            meeting.wait()
        except threading.BrokenBarrierError:
            meeting.reset()
            met.append(False)
        else:
            met.append(True)
        return True

    monkeypatch.setattr("argon2.low_level.verify_secret", met_another)
    verifying = Verifying()
    attempts = [asyncio.ensure_future(verifying.is_of("x", encoded())) for _ in range(6)]
    answers = await asyncio.gather(*attempts, return_exceptions=True)

    assert answers[:4] == [True] * 4
    assert [type(answer) for answer in answers[4:]] == [Crowded] * 2
    assert met == [False] * 4
    assert await verifying.is_of("x", encoded())  # nobody waits any more


async def test_an_attempt_that_is_given_up_takes_no_place() -> None:
    verifying = Verifying()
    for _ in range(2 * subject.MOST_WAITING):
        attempt = asyncio.ensure_future(verifying.is_of("x", made("x")))
        await asyncio.sleep(0)
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)

    assert await verifying.is_of("x", made("x"))
