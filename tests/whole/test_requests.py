"""Whatever is sent, the answer says what was wrong with it, and the server goes on."""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE, Client, messages_of
from tests.forked import serving
from tests.server import Server

CONFIG = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
LARGEST = 16 * 1024 * 1024
POST = b"POST /api/pipelines/p/messages HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), CONFIG) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Return a connection that is kept as long as the server keeps it."""
    client = server.client()
    yield client
    client.close()


def reason(body: bytes) -> str:
    """Return why something was refused; every refusal has the same shape."""
    answer = json.loads(body)
    assert set(answer) <= {"error", "diagnostics"}
    assert "\n" not in answer["error"]
    assert isinstance(answer["error"], str)
    return str(answer["error"])


NOT_JSON = {
    "nothing": b"",
    "cut off": b'{"a": [1, 2',
    "no JSON": b"temp=21.5&unit=C",
    "single quotes": b"{'a': 1}",
    "two values": b'{"a": 1} {"a": 2}',
    "trailing comma": b"[1, 2,]",
    "a comment": b"[1] // one",
    "deep list": b"[" * 100_000 + b"]" * 100_000,
    "deep object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep and cut off": b"[" * 100_000,
    "one level too deep": b"[" * 129 + b"]" * 129,
    "1e400": b'{"n": 1e400}',
    "-1e400": b"[-1e400]",
    "NaN": b'{"n": NaN}',
    "Infinity": b"[Infinity]",
    "-Infinity": b"[-Infinity]",
    "an endless integer": b"1" * 100_000,
    "lone surrogate": rb'{"a": "\ud800"}',
    "lone low surrogate": rb'["\udc00 x"]',
    "lone surrogate as key": rb'{"\ud800": 1}',
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "line break in text": b'{"a": "x\ny"}',
    "zeros": bytes(64),
    "gzip": gzip.compress(b'{"a": 1}'),
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_refused_and_the_connection_goes_on(
    client: Client, body: bytes
) -> None:
    refused = client.request("POST", messages_of("p"), body)
    accepted = client.post("p", {"n": 1})

    assert refused.status == 400
    assert re.match("the body is not JSON: .", reason(refused.body))
    assert (accepted.status, accepted.value) == (202, {"accepted": 1})


JSON = {
    "nested as deep as may be": (b"[" * 128 + b"]" * 128, 1),
    "a repeated key": (b'{"a": 1, "a": 2}', 1),
    "a pair of surrogates": (rb'"\ud83d\ude00"', 1),
    "a large integer": (b'{"n": 123456789012345678901234567890}', 1),
    "null": (b"null", 1),
    "nothing in a list": (b"[]", 0),
    "lists in a list": (b"[[1], [2], [3]]", 3),
    "blanks around it": (b" \r\n\t{ } \n", 1),
}


@pytest.mark.parametrize(("body", "count"), JSON.values(), ids=JSON)
def test_what_is_json_is_taken_whatever_it_is_called(
    client: Client, body: bytes, count: int
) -> None:
    answer = client.request("POST", messages_of("p"), body, {"Content-Type": "text/html"})

    assert (answer.status, answer.value) == (202, {"accepted": count})


def test_what_was_taken_comes_out_as_it_was_sent(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as server:
        for body, _ in JSON.values():
            server.request("POST", messages_of("p"), body)
        server.request("POST", messages_of("p"), b"[1e400]")
        assert server.stop() == 0

        printed = [json.loads(line)["batch"] for line in server.out.all()]
    sent = [json.loads(body) for body, _ in JSON.values()]
    assert printed == [
        value if isinstance(value, list) else [value] for value in sent if value != []
    ]


def test_a_body_of_sixteen_mebibytes_is_taken(client: Client) -> None:
    body = b'"' + b"x" * (LARGEST - 2) + b'"'

    assert client.request("POST", messages_of("p"), body).value == {"accepted": 1}


def answers(server: Server, *pieces: bytes) -> bytes:
    """Send what no client sends, all of it, and return all that comes back until the server closes."""
    with socket.create_connection((HOST, server.port), PATIENCE) as connection:
        answer = b""
        for piece in pieces:
            connection.sendall(piece)
        while received := connection.recv(65536):
            answer += received
    return answer


def test_a_larger_body_is_refused_when_it_is_announced(server: Server, client: Client) -> None:
    announced = answers(server, POST + b"Content-Length: %d\r\n\r\n" % (LARGEST + 1))
    sent = client.request("POST", messages_of("p"), b'"' + b"x" * LARGEST + b'"')

    assert announced.startswith(b"HTTP/1.1 413 ")
    assert (sent.status, reason(sent.body)) == (413, f"the body is larger than {LARGEST} bytes")
    assert server.post("p", {"n": 1}).status == 202


def test_a_larger_body_is_refused_when_it_was_not_announced(server: Server) -> None:
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"

    told = answers(server, POST + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 20)

    assert told.startswith(b"HTTP/1.1 413 ")
    assert server.post("p", {"n": 1}).status == 202


def test_a_body_in_chunks_is_taken(server: Server) -> None:
    pieces = [b'1\r\n{\r\n6\r\n"a": 1\r\n', b"1\r\n}\r\n0\r\n\r\n"]
    head = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert answers(server, head, *pieces).endswith(b'{"accepted":1}')


def test_a_post_that_is_not_sent_to_its_end_is_not_taken(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as server:
        with socket.create_connection((HOST, server.port)) as connection:
            connection.sendall(POST + b'Content-Length: 100\r\n\r\n{"n": 1}')
        server.post("p", {"n": 2})
        assert server.stop() == 0

        assert [json.loads(line)["batch"] for line in server.out.all()] == [[{"n": 2}]]


NOT_HTTP = {
    "a greeting": b"hello\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length in words": POST + b"Content-Length: ten\r\n\r\n",
    "an endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "HTTP/0.9": b"GET /livez\r\n\r\n",
}


@pytest.mark.parametrize("request_", NOT_HTTP.values(), ids=NOT_HTTP)
def test_what_is_not_http_is_refused_and_the_connection_closed(
    server: Server, request_: bytes
) -> None:
    head, _, body = answers(server, request_).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert reason(body).startswith("the request is not HTTP")
    assert server.get("/livez").status == 200


def test_what_is_not_http_is_refused_behind_the_answer_of_what_came_before(server: Server) -> None:
    whole = POST + b'Content-Length: 8\r\n\r\n{"n": 1}'

    told = answers(server, whole + b"hello\r\n\r\n")

    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"202", b"400"]
    assert re.findall(rb"HTTP/1.1 (\d+)", answers(server, whole * 3 + b"\0")) == [b"202"] * 3 + [
        b"400"
    ]


ENDLESS = {
    "a header": (b"GET /livez HTTP/1.1\r\nX: ", b"x" * 65536),
    "headers": (b"GET /livez HTTP/1.1\r\n", b"X: x\r\n" * 10_000),
    "a path": (b"GET /", b"x" * 65536),
}


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
def test_a_head_without_an_end_is_refused(server: Server, begin: bytes, more: bytes) -> None:
    told = answers(server, begin, *[more] * 100)

    assert told.startswith(b"HTTP/1.1 431 ")
    assert server.get("/livez").status == 200


def test_a_path_that_is_too_long_is_refused_in_one_packet_as_well(server: Server) -> None:
    told = answers(server, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert told.startswith(b"HTTP/1.1 431 ")


def test_an_event_stream_ends_with_its_client_although_another_request_waits(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, CONFIG) as server:
        with socket.create_connection((HOST, server.port)) as connection:
            connection.sendall(b"".join(f"GET {p} HTTP/1.1\r\n\r\n".encode() for p in PIPELINED))
            connection.recv(1)

        assert [server.post("p", {"n": number}).status for number in range(20)] == [202] * 20
        assert server.stop() == 0  # without a traceback of what was sent to nobody


PIPELINED = ("/events", "/livez")

ASKED = [
    ("GET", "/nowhere", 404),
    ("POST", "/api/pipelines/nobody/messages", 404),
    ("DELETE", "/api/pipelines/nobody", 404),
    ("GET", "/api/pipelines/p/messages", 405),
    ("DELETE", "/api/pipelines", 405),
    ("PUT", "/livez", 405),
    ("POST", "/events", 405),
    ("POST", "/api/pipelines", 400),
]


@pytest.mark.parametrize(("method", "path", "status"), ASKED)
def test_a_refusal_keeps_the_connection(
    client: Client, method: str, path: str, status: int
) -> None:
    refused = client.request(method, path)
    next_one = client.request("GET", "/livez")

    assert refused.status == status
    assert refused.headers["content-type"] == "application/json"
    assert reason(refused.body)
    assert ("allow" in refused.headers) == (status == 405)
    assert next_one.status == 200


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/metrics", "/api/pipelines", "/api/docs", "/api/openapi.json"]
)
def test_head_answers_as_get_does_without_the_body(client: Client, path: str) -> None:
    head, got = client.request("HEAD", path), client.request("GET", path)

    assert (head.status, head.body) == (got.status, b"") == (200, b"")
    del head.headers["date"], got.headers["date"]
    if path != "/metrics":
        assert head.headers == got.headers


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/livez", {"GET", "HEAD"}),
        ("/events", {"GET", "HEAD"}),
        ("/api/pipelines", {"GET", "HEAD", "POST"}),
        ("/api/pipelines/p", {"GET", "HEAD", "PUT", "DELETE"}),
        ("/api/pipelines/p/messages", {"POST"}),
    ],
)
def test_options_tells_what_a_path_takes(client: Client, path: str, methods: set[str]) -> None:
    answer = client.request("OPTIONS", path)

    assert (answer.status, answer.body) == (200, b"")
    assert methods <= set(answer.headers["allow"].split(", ")) <= methods | {"OPTIONS"}
    assert client.request("GET", "/livez").status == 200


def test_the_head_of_an_event_stream_ends(client: Client) -> None:
    answer = client.request("HEAD", "/events")

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream"
