"""Answers of a Redis server that are larger than any: they are refused before they are kept."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hiredis import Reader
from redis.exceptions import InvalidResponse

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.redis import connection as redis_client
from headrace.connectors.redis.frames import MOST_BYTES, BoundedReader, TooLarge
from tests.clients import PATIENCE
from tests.evil import evil
from tests.redis_sides import context, sink, source

SAID = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$%d\r\n%b\r\n"
BODIES = [
    b"",
    b"*1000\r\n",
    b"x*1000000\r\n",
    b"*",
    b"*12",
    b"100\r",
    b"*100\r\n*100\r\n*100\r\n",
    b"%20",
]


def message(body: bytes) -> bytes:
    return SAID % (len(body), body)


def cut(pieces: Iterable[bytes]) -> list[object]:
    """Return the answers in pieces that arrive one after the other."""
    reader, found = BoundedReader(Reader(notEnoughData=object())), []
    for piece in pieces:
        reader.feed(piece)
        while type(reply := reader.gets()) is not object:
            found.append(reply)
    assert not reader.has_data()
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64, 1000])
def test_what_only_looks_like_many_parts_is_a_message_like_any_other(size):
    stream = b"".join(map(message, BODIES)) + b"+PONG\r\n"

    found = cut(stream[at : at + size] for at in range(0, len(stream), size))

    assert found == [*([b"message", b"a", body] for body in BODIES), b"PONG"]


@pytest.mark.parametrize("kind", [b"*", b">", b"~", b"%", b"|"])
@pytest.mark.parametrize("before", [b"", b"+OK\r\n", b"*2\r\n", b"*2\r\n$7\r\nmessage\r\n"])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_an_answer_of_many_parts_is_refused_wherever_it_is_announced(kind, before, size):
    stream = before + kind + b"100\r\n"

    with pytest.raises(InvalidResponse, match="many parts"):
        cut(stream[at : at + size] for at in range(0, len(stream), size))


def test_small_parts_without_end_are_refused():
    row = b"*99\r\n" + b"*0\r\n" * 99
    square = b"*99\r\n" + row * 99

    with pytest.raises(InvalidResponse, match="many parts"):
        cut([b"*99\r\n"] + [square] * 98)


def test_a_message_may_be_large():
    body = bytes(MOST_BYTES // 2)

    assert cut([message(body)]) == [[b"message", b"a", body]]


def test_an_answer_that_never_ends_is_refused():
    with pytest.raises(TooLarge, match="sends an answer of more than 64 MiB"):
        cut([b"$4000000000\r\n"] + [bytes(1 << 20)] * 70)


async def test_what_a_connection_had_read_is_gone_when_it_is_closed():
    body = b"x" * 1_000_000

    async with evil(
        b"+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n$4000000\r\n" + body, b""
    ) as server:
        ctx = context(f"redis://{server.where}")
        made = source(f"redis://{server.where}", "a", ctx)
        link = await made._server.connect()
        with pytest.raises(TimeoutError):
            async with ctx.clock.timeout(0.2):
                await link.arrivals()
        reading = link._bounded
        assert reading.reader.len() > len(body)

        await link.close()

    assert reading.reader.len() == 0


@pytest.mark.parametrize("side", ["input", "output"])
async def test_a_server_that_sends_without_end_is_left_alone_soon(side, monkeypatch):
    monkeypatch.setattr(redis_client, "REACH_SECONDS", PATIENCE)  # for 64 MiB on a busy machine
    async with evil(b"$4000000000\r\n", b"x" * 65536) as server:
        url = f"redis://{server.where}"
        with pytest.raises(Unreachable) as lost:
            await (sink(url, "a").start() if side == "output" else anext(source(url, "a").read()))

        assert str(lost.value) == f"{server.where} sends an answer of more than 64 MiB"
        assert server.taken < MOST_BYTES + 16 * 1024 * 1024


async def test_a_server_that_announces_a_thousand_million_parts_is_left_alone_at_once():
    async with evil(b"*1000000000\r\n", b"*1000000\r\n" * 1000) as server:
        url = f"redis://{server.where}"

        with pytest.raises(BuildRefused) as refused:
            await anext(source(url, "a").read())

        assert str(refused.value) == f"{server.where} answers, and not as Redis does"
        assert server.taken < 16 * 1024 * 1024
