"""Transfer codings: `chunked` alone is taken, and what is packed in another way is read by nobody."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving
from tests.server import Server

CONFIG = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
POST = b"POST /api/pipelines/p/messages HTTP/1.1\r\nHost: x\r\n"
NEXT = POST + b'Connection: close\r\nContent-Length: 8\r\n\r\n{"n": 2}'
REMEDY = (
    "is not taken: send the body as it is, with 'Transfer-Encoding: chunked' alone "
    "or with a Content-Length"
)


def chunks(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), CONFIG) as server:
        yield server


def answers(server: Server, sent: bytes) -> list[bytes]:
    """Send what no client sends, and return all that comes back, parted by answers."""
    with socket.create_connection((HOST, server.port), PATIENCE) as connection:
        connection.sendall(sent)
        told = b""
        while received := connection.recv(65536):
            told += received
    return told.split(b"HTTP/1.1 ")[1:]


REFUSED = {
    "packed, then in chunks": ([b"gzip, chunked"], b"501", '"gzip, chunked" ' + REMEDY),
    "in two fields": ([b"gzip", b"chunked"], b"501", '"gzip, chunked" ' + REMEDY),
    "in other letters": ([b"X-GZip ,\tChunked"], b"501", '"X-GZip, Chunked" ' + REMEDY),
    "with parameters": ([b'x;a="b, chunked'], b"501", '"x;a=\\"b, chunked" ' + REMEDY),
    "of a long name": ([b"x" * 5000 + b", chunked"], b"501", REMEDY),
    "no coding, then in chunks": ([b"identity, chunked"], b"501", '"identity, chunked" ' + REMEDY),
    "nothing but a comma": ([b","], b"400", '"" ' + REMEDY),
    "packed": ([b"gzip"], b"400", '"gzip" ' + REMEDY),
    "no coding": ([b"identity"], b"400", '"identity" ' + REMEDY),
    "chunks with parameters": ([b"chunked;q=1"], b"400", '"chunked;q=1" ' + REMEDY),
    "in chunks, then packed": ([b"chunked, gzip"], b"400", "Transfer-Encoding"),
    "in chunks of chunks": ([b"chunked, chunked"], b"400", "Transfer-Encoding"),
    "in chunks of chunks, in two fields": ([b"chunked", b"chunked"], b"400", "Transfer-Encoding"),
    "nothing": ([b""], b"400", "Transfer-Encoding"),
}


@pytest.mark.parametrize("body", [b'{"n": 1}', gzip.compress(b'{"n": 1}')], ids=["plain", "packed"])
@pytest.mark.parametrize(("codings", "status", "text"), REFUSED.values(), ids=REFUSED)
def test_a_transfer_coding_besides_chunked_is_refused_with_what_is_taken(
    server: Server, codings: list[bytes], status: bytes, text: str, body: bytes
) -> None:
    fields = b"".join(b"Transfer-Encoding: %b\r\n" % each for each in codings)

    # What follows is not read: where such a body ends is known to nobody.
    (told,) = answers(server, POST + fields + b"\r\n" + chunks(body) + NEXT)

    head, _, refusal = told.partition(b"\r\n\r\n")
    assert head.startswith(status)
    assert b"connection: close" in head
    assert text in json.loads(refusal)["error"]


@pytest.mark.parametrize("coding", [b"chunked", b"Chunked", b", chunked", b"\tchunked "])
def test_chunked_alone_is_taken(server: Server, coding: bytes) -> None:
    sent = POST + b"Transfer-Encoding: %b\r\n\r\n" % coding + chunks(b'{"n": 1}')

    assert [each[:3] for each in answers(server, sent + NEXT)] == [b"202", b"202"]


def test_a_version_of_http_that_has_no_codings_is_told_so(server: Server) -> None:
    sent = POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n"

    (told,) = answers(server, sent + chunks(b'{"n": 1}') + NEXT)

    head, _, refusal = told.partition(b"\r\n\r\n")
    assert head.startswith(b"400")
    assert "HTTP/1.0 has no transfer codings" in json.loads(refusal)["error"]


def test_a_coding_is_refused_beside_the_offer_of_another_protocol(server: Server) -> None:
    offer = b"Upgrade: h2c\r\nConnection: Upgrade\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"

    (told,) = answers(server, POST + offer + chunks(b'{"n": 1}'))

    assert told.startswith(b"501")
