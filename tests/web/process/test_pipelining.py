"""Several requests on one connection, sent without waiting: answers come in the order of the requests."""

from __future__ import annotations

import asyncio

import pytest

from headrace.web.asgi import Asgi, AsgiMessage, Receive, Send, respond
from headrace.web.process.boundedreading import MOST_HEAD_BYTES
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.protocol import LOOKS, Protocol
from tests.web.process.wires import BODY, HEAD, House, Slow, open_ones, steps, wire_of

WHOLE = HEAD + b"Content-Length: 2\r\n\r\n{}"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
REFUSED = {
    "what is no HTTP": (b"nonsense\r\n\r\n", b"400"),
    "a proxy's request": (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", b"501"),
    "another coding": (CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", b"501"),
    "a broken body": (CHUNKED + b"zz\r\n", b"400"),
    "a head without an end": (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * MOST_HEAD_BYTES, b"431"),
}


class Streaming:
    """An application that begins to answer, and goes on when it is told to."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer one request, in two pieces."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await self.may_end.wait()
        await send({"type": "http.response.body", "body": b"ended"})


def entered(application: Asgi) -> Protocol:
    return House(ConnectionLimit(), application).enter()


def statuses(connection: Protocol) -> list[bytes]:
    return [each[:3] for each in wire_of(connection).written.split(b"HTTP/1.1 ")[1:]]


def pieces(refused: bytes) -> list[bytes]:
    """Return what is sent behind others: bytes that are counted come in packets of their own."""
    return [refused[:100], refused[100:]] if len(refused) > MOST_HEAD_BYTES else [refused]


@pytest.mark.parametrize(("refused", "status"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_comes_behind_the_answers_of_what_was_asked_before(
    refused: bytes, status: bytes
) -> None:
    slow = Slow()
    connection = entered(slow)
    first, *rest = pieces(refused)
    connection.data_received(WHOLE * 3 + first)
    for each in rest:
        connection.data_received(each)
    await steps()

    before = statuses(connection)
    slow.may_answer.set()
    await steps(20)

    assert before == []
    assert statuses(connection) == [b"200", b"200", b"200", status]
    assert connection.transport.is_closing()


async def test_a_refusal_does_not_come_into_an_answer_that_has_begun() -> None:
    streaming = Streaming()
    connection = entered(streaming)
    connection.data_received(WHOLE)
    await steps()
    connection.data_received(b"nonsense\r\n\r\n")
    before = wire_of(connection).written

    streaming.may_end.set()
    await steps()

    assert before.endswith(b"begun\r\n")
    begun, _, behind = wire_of(connection).written.partition(b"ended\r\n0\r\n\r\n")
    assert (begun.startswith(before), behind[:13]) == (True, b"HTTP/1.1 400 ")


async def test_a_refusal_is_dropped_behind_an_answer_that_ends_the_connection() -> None:
    slow = Slow()
    connection = entered(slow)
    last = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    connection.data_received(last + b"nonsense\r\n")

    slow.may_answer.set()
    await steps()

    assert statuses(connection) == [b"200"]
    assert connection.transport.is_closing()


async def test_what_follows_a_refused_request_is_not_read() -> None:
    slow = Slow()
    connection = entered(slow)
    connection.data_received(WHOLE + b"nonsense\r\n\r\n" + WHOLE)
    connection.data_received(WHOLE)

    slow.may_answer.set()
    await steps(20)

    assert statuses(connection) == [b"200", b"400"]
    assert connection.held == 0


async def test_a_request_that_is_answered_is_not_refused_as_well() -> None:
    async def refusing(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        await respond(send, 404, b"{}")

    connection = entered(refusing)
    connection.data_received(CHUNKED)
    await steps()
    connection.data_received(b"zz\r\n")

    assert statuses(connection) == [b"404"]
    assert connection.transport.is_closing()


async def test_a_refusal_behind_an_answer_that_never_ends_is_not_waited_for() -> None:
    connection = entered(Streaming())
    connection.data_received(WHOLE + b"nonsense\r\n\r\n")
    await steps()

    assert any(connection.is_stuck() for _ in range(LOOKS + 1))


async def test_a_body_for_which_there_is_no_room_does_not_wait_behind_others() -> None:
    connection = House(ConnectionLimit(most_held=12_000), Slow()).enter()
    connection.data_received(WHOLE)
    await steps()

    for _ in range(3):
        connection.data_received(BODY + b"x" * 5000)

    # Cut off: a 503 would be taken for the answer of the first, which is queued.
    assert (open_ones([connection]), statuses(connection)) == ([], [])
