"""What a `postgres` output takes from who only seems to be a server: all that one may send, and no more."""

from __future__ import annotations

import struct

import pytest

from headrace.connectors.postgres.wire import (
    MOST_ANSWERED,
    MOST_AT_FIRST,
    MOST_ROUNDS,
    Messages,
    Strange,
)
from tests.clients import HOST
from tests.connectors.test_postgres_connecting import context_at, refused, stranger


def message(kind: bytes, body: bytes = b"", size: int | None = None) -> bytes:
    """Return a message, announced as of another size if one is given."""
    return kind + struct.pack(">I", len(body) + 4 if size is None else size) + body


def hashing(rounds: int | str) -> bytes:
    """Return how a server asks for a password that is hashed so often."""
    return message(b"R", struct.pack(">I", 11) + f"r=abc,s=c2FsdA==,i={rounds}".encode())


LET_IN = message(b"R", bytes(4)) + message(b"K", bytes(8)) + message(b"Z", b"I")
SETTING = message(b"S", b"name\0" + b"v" * 1000 + b"\0")
NOTICE = message(b"N", b"M" + b"x" * (1 << 20) + b"\0\0")
TOO_MUCH = "sends more than PostgreSQL does"
NO_POSTGRES = "does not speak PostgreSQL"
TOO_OFTEN = "wants the password hashed more than 1,000,000 times"

STRANGE = [
    (bytes(5), NO_POSTGRES),
    (b"\xff" * 64, NO_POSTGRES),
    (b"-ERR unknown command\r\n", NO_POSTGRES),
    (b"HTTP/1.1 400 Bad\r\n\r\n", NO_POSTGRES),
    (message(b"R", size=3), NO_POSTGRES),
    (message(b"D", b"x"), NO_POSTGRES),
    (message(b"R", size=MOST_AT_FIRST + 4), TOO_MUCH),
    (SETTING * (MOST_AT_FIRST // 1000), TOO_MUCH),
    (hashing(MOST_ROUNDS + 1), TOO_OFTEN),
    (hashing("9" * 5000), TOO_OFTEN),
]
LATER = [
    (bytes(5), NO_POSTGRES),
    (message(b"Q"), NO_POSTGRES),
    (message(b"D", size=MOST_ANSWERED + 4), TOO_MUCH),
    (NOTICE * 64, TOO_MUCH),
    ((SETTING + message(b"Z", b"I")) * (MOST_AT_FIRST // 1000), TOO_MUCH),
]


@pytest.mark.parametrize(("sent", "said"), STRANGE)
async def test_who_sends_what_no_postgres_sends_is_refused_at_once(sent, said):
    async with stranger(sent) as (host, port):
        assert await refused(context_at(host, port)) == f"{HOST}:{port} {said}"


def follow(sent: bytes, step: int) -> None:
    """Take what arrives in pieces of a size."""
    messages = Messages()
    for start in range(0, len(sent), step):
        messages.follow(sent[start : start + step])


@pytest.mark.parametrize("step", [1, 3, 7, 1 << 30])
@pytest.mark.parametrize(
    ("sent", "said"), [*STRANGE[:7], *STRANGE[8:], *((LET_IN + sent, s) for sent, s in LATER[:3])]
)
def test_it_is_noticed_however_it_arrives(sent, said, step):
    with pytest.raises(Strange) as strange:
        follow(sent, step)

    assert str(strange.value) == said


@pytest.mark.parametrize("step", [1, 5, 1 << 30])
def test_what_a_server_may_send_is_let_through(step):
    answer = message(b"1") + message(b"D", b"x" * 100) + message(b"C", b"INSERT 0 1\0")
    sent = hashing(4096) + hashing(MOST_ROUNDS) + SETTING * 20 + LET_IN
    sent += (answer + SETTING + message(b"Z", b"I")) * 50

    follow(sent, step)


def test_each_answer_counts_for_itself():
    messages = Messages()
    messages.follow(LET_IN)

    for _ in range(3):
        for _ in range(63):
            messages.follow(NOTICE)
        messages.follow(message(b"Z", b"I"))
