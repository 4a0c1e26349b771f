"""Requests that are read in two ways by two readers: none of them leads round the sign-in."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.forked import serving
from tests.server import Server, settled
from tests.web.auth.people import ADMIN, PASSWORDS, READER, basic
from tests.whole.attacks.wires import statuses, told

AUTH = {
    "type": "basic",
    "users": {
        ADMIN: {"password": PASSWORDS[ADMIN], "role": "admin"},
        READER: {"password": PASSWORDS[READER]},
    },
}
CONFIG = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]

NOBODY = b""
AS_READER = f"Authorization: {basic(READER)['Authorization']}\r\n".encode("latin-1")
AS_ADMIN = f"Authorization: {basic(ADMIN)['Authorization']}\r\n".encode("latin-1")
WRONG = f"Authorization: {basic(ADMIN, 'guessed')['Authorization']}\r\n".encode("latin-1")
HOST = b"Host: x\r\n"
CLOSE = b"Connection: close\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, CONFIG, *settled(folder, auth=AUTH)) as server:
        yield server
        # Whatever was tried, the pipeline is there and is the only one.
        running = server.get("/api/pipelines", basic(ADMIN)).value
        assert [each["id"] for each in running] == ["p"]


def listing(*headers: bytes, target: bytes = b"/api/pipelines", version: bytes = b"1.1") -> bytes:
    """Return a request for what runs."""
    return b"GET %b HTTP/%b\r\n%b%b\r\n" % (target, version, HOST, b"".join(headers))


def deleting(*headers: bytes) -> bytes:
    """Return a request to end the pipeline."""
    return b"DELETE /api/pipelines/p HTTP/1.1\r\n%b%b\r\n" % (HOST, b"".join(headers))


def posting(body: bytes, *headers: bytes) -> bytes:
    """Return a post to the pipeline, with the headers that describe its body."""
    head = b"POST /api/pipelines/p/messages HTTP/1.1\r\n%b" % HOST
    return b"%b%b\r\n%b" % (head, b"".join(headers), body)


def test_every_request_of_a_connection_is_asked_who_it_is_of(server: Server) -> None:
    one_after_the_other = [
        listing(AS_ADMIN),
        listing(),
        deleting(AS_READER),
        deleting(),
        listing(AS_READER),
        deleting(WRONG, CLOSE),
    ]
    expected = [200, 401, 403, 401, 200, 401]

    assert statuses(told(server.port, b"".join(one_after_the_other))) == expected
    assert statuses(told(server.port, *one_after_the_other)) == expected


@pytest.mark.parametrize(
    ("target", "signed_in", "signed_out"),
    [
        (b"http://x/api/pipelines", 200, 401),
        (b"http://ann:secret@x/api/pipelines", 200, 401),
        (b"http://livez/api/pipelines", 200, 401),
        (b"/api/pipelines?a=/livez", 200, 401),
        (b"/api/pipelines#/livez", 200, 401),
        (b"http://x", 400, 400),
        (b"http:///api/pipelines", 400, 400),
        (b"*", 404, 404),
        (b"/livez/../api/pipelines", 404, 404),
        (b"/api/%70ipelines", 404, 404),
        (b"//api/pipelines", 404, 404),
    ],
)
def test_a_target_is_its_path_however_it_is_written(
    server: Server, target: bytes, signed_in: int, signed_out: int
) -> None:
    let_in = told(server.port, listing(AS_READER, CLOSE, target=target))
    refused = told(server.port, listing(CLOSE, target=target))

    assert (statuses(let_in), statuses(refused)) == ([signed_in], [signed_out])


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_older_client_is_asked_as_well(server: Server, version: bytes) -> None:
    let_in = told(server.port, listing(AS_READER, CLOSE, version=version))
    refused = told(server.port, listing(CLOSE, version=version))

    assert (statuses(let_in), statuses(refused)) == ([200], [401])


@pytest.mark.parametrize("version", [b"0.9", b"2.0", b"9.9", b"1.1.1", b"x"])
def test_another_protocol_is_refused(server: Server, version: bytes) -> None:
    said = told(server.port, listing(AS_READER, version=version))

    assert statuses(said) == [400]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([AS_READER, WRONG], 401),  # of two none counts
        ([WRONG, AS_READER], 401),
        ([AS_READER, AS_READER], 401),
        ([WRONG, AS_ADMIN], 401),
        ([b"Cookie: headrace_session=%b\r\n" % (b"0" * 64)] * 2, 401),
        ([b"Cookie: headrace_session=a; headrace_session=b\r\n", AS_READER], 200),
        ([b"AUTHORIZATION: x\r\n", b"authorization: y\r\n"], 401),
        ([AS_READER.replace(b": ", b":\t")], 200),
        ([b"Authorization\r\n"], 400),
        ([AS_READER.replace(b":", b" :")], 400),
        ([AS_READER.replace(b": ", b":\r\n ")], 400),  # a folded line is of another age
        ([b"X: y\r\n " + AS_ADMIN], 400),
        ([b"X: y\n" + AS_READER], 400),
        ([b"X: y\r" + AS_READER], 400),
        ([b"X: y\0\r\n", AS_READER], 400),
    ],
)
def test_headers_that_are_there_twice_or_are_none_are_no_way_in(
    server: Server, headers: list[bytes], status: int
) -> None:
    said = told(server.port, listing(*headers, CLOSE))

    assert statuses(said)[0] == status


HIDDEN = deleting()
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def sized(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


SMUGGLED = {
    "a length and chunks": posting(b"0\r\n\r\n" + HIDDEN, CHUNKED, sized(b"0\r\n\r\n" + HIDDEN)),
    "chunks and a length": posting(b"0\r\n\r\n" + HIDDEN, sized(b"0\r\n\r\n" + HIDDEN), CHUNKED),
    "two lengths": posting(HIDDEN, sized(b""), sized(HIDDEN)),
    "a list of lengths": posting(HIDDEN, b"Content-Length: 0, 5\r\n"),
    "a signed length": posting(HIDDEN, b"Content-Length: +0\r\n"),
    "a length in hex": posting(HIDDEN, b"Content-Length: 0x0\r\n"),
    "a length behind a blank": posting(HIDDEN, b"Content-Length : 0\r\n"),
    "a coding that is none": posting(HIDDEN, b"Transfer-Encoding: xchunked\r\n"),
    "chunks that are not last": posting(HIDDEN, b"Transfer-Encoding: chunked, identity\r\n"),
    "a size that is none": posting(b"zz\r\n" + HIDDEN, CHUNKED),
    "a size with a sign": posting(b"-1\r\n" + HIDDEN, CHUNKED),
    "an endless size": posting(b"f" * 17 + b"\r\n" + HIDDEN, CHUNKED),
    "a chunk that is longer": posting(b"1\r\nxx\r\n0\r\n\r\n" + HIDDEN, CHUNKED),
    "a line break alone": posting(b"0\n\n" + HIDDEN, CHUNKED),
}


@pytest.mark.parametrize("request_", SMUGGLED.values(), ids=SMUGGLED)
def test_a_request_whose_end_is_unclear_is_refused_and_nothing_behind_it_is_read(
    server: Server, request_: bytes
) -> None:
    assert statuses(told(server.port, request_)) == [400]


def test_a_request_within_a_body_is_a_body(server: Server) -> None:
    body = b"[" + json.dumps(deleting(AS_ADMIN).decode("latin-1")).encode() + b"]"
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    assert statuses(told(server.port, posting(body, sized(body), CLOSE))) == [202]
    assert statuses(told(server.port, posting(chunks, CHUNKED, CLOSE))) == [202]


def test_what_follows_a_refused_body_is_not_read_as_a_request(server: Server) -> None:
    # It says that it is longer than may be, and is not.
    too_long = posting(deleting(AS_ADMIN), b"Content-Length: 99999999\r\n")

    assert statuses(told(server.port, too_long)) == [413]


@pytest.mark.parametrize("wanted", [b"h2c", b"websocket", b"TLS/1.0"])
def test_another_protocol_that_is_offered_is_not_spoken_and_the_body_is_a_body(
    server: Server, wanted: bytes
) -> None:
    offer = b"Upgrade: %b\r\nConnection: Upgrade, HTTP2-Settings\r\n" % wanted
    settings = b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    body = b'{"n": 1}'
    asked = [
        listing(offer, settings, AS_READER),
        posting(body, sized(body), offer),
        posting(b"8\r\n%b\r\n0\r\n\r\n" % body, offer, CHUNKED),
        posting(HIDDEN, sized(HIDDEN), AS_ADMIN, offer),
        deleting(offer),
        listing(offer.replace(b"Upgrade, ", b"close, Upgrade, ")),
    ]
    expected = [200, 202, 202, 400, 401, 401]

    assert statuses(told(server.port, *asked)) == expected
    assert statuses(told(server.port, b"".join(asked))) == expected


@pytest.mark.parametrize("target", [b"/api/pipelines", b"x:80", b"http://x/livez"])
def test_nobody_is_connected_to_anything(server: Server, target: bytes) -> None:
    asked = b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (target, HOST)

    (status,) = statuses(told(server.port, asked + deleting(AS_ADMIN)))

    assert status in (400, 501)


def test_a_trailer_signs_nobody_in(server: Server) -> None:
    posted = b"0\r\n" + AS_ADMIN + b"\r\n"
    head = b"POST /api/config/revert HTTP/1.1\r\n" + HOST + CLOSE + CHUNKED
    head += b"Trailer: Authorization\r\n\r\n"

    assert statuses(told(server.port, head + posted)) == [401]  # there before it is asked
    assert statuses(told(server.port, head, posted)) == [401]
