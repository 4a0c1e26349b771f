"""Posts that are answered in the protocol: what a client sees is what the application would answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headrace.compiler.clock import Clock
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.formats import FormatOptions, PayloadFormat
from headrace.compiler.runtime.wayin import FormattedWayIn, WayIn
from headrace.web.app import Application
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import PostAnswers
from headrace.web.process.protocol import Protocol
from headrace.web.resources.ingest import Ingest
from headrace.web.service import Service
from tests.web.process.wires import House, steps, wire_of
from tests.web.resources.ingest.posting_to import PATH, Asked

LINE = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
SMALL_LARGEST = 40


class Picky(Asked):
    """An engine with pipelines that can be posted to, twice and not with this, and one that cannot."""

    needs = "s3cret"

    def offer(self, batch: list[Any], origin: Any, size: int = 0) -> bool:
        if batch == ["unforeseen"]:
            raise ZeroDivisionError
        self.has_room = len(self.offered) < 2
        return super().offer(batch, origin, size)

    def way_in(self, pipeline: str) -> WayIn:
        if pipeline in ("p", "a/b"):
            return super().way_in(pipeline)
        if pipeline == "table":
            format = PayloadFormat.known["csv"](FormatOptions())
            clock = Clock(asyncio.get_running_loop())
            return FormattedWayIn(pipeline, self, self.large, format, clock)
        if pipeline == "mute":
            return None  # type: ignore[return-value]
        raise UnknownPipeline(pipeline)


class Sides(NamedTuple):
    """One connection, and what has been offered over it."""

    connection: Protocol
    asked: Asked


def side(asked: Asked, *, in_protocol: bool) -> Sides:
    """Return a connection whose posts are answered in the protocol, or by the application."""
    service = Service(asked, None, Clock(asyncio.get_running_loop()))  # type: ignore[arg-type]
    house = House(ConnectionLimit(), Application(service))
    posts = PostAnswers(Ingest(service), Clock(asyncio.get_running_loop())) if in_protocol else None
    return Sides(house.enter(posts), asked)


def request(
    body: bytes = b"1", *headers: bytes, line: bytes = LINE, key: bytes = b"s3cret"
) -> bytes:
    """Return a whole request with a length."""
    fields = [b"x-key: " + key, b"content-length: %d" % len(body), *headers]
    return line + b"".join(each + b"\r\n" for each in fields) + b"\r\n" + body


def chunked(*parts: bytes, ends: bytes = b"0\r\n\r\n") -> bytes:
    """Return a whole request in chunks."""
    head = LINE + b"x-key: s3cret\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + ends


class Answered(NamedTuple):
    """One answer, as a client reads it."""

    status: int
    headers: list[tuple[str, str]]
    body: Any


def answers(written: bytes) -> list[Answered]:
    """Return the answers in what was written; an interim one has no body."""
    found = []
    while written:
        head, _, written = written.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = sorted(
            (name, value) for name, _, value in (each.partition(": ") for each in lines)
        )
        size = int(dict(headers).get("content-length", "0"))
        body, written = written[:size], written[size:]
        status = int(first.removeprefix("HTTP/1.1 ")[:3])
        found.append(Answered(status, headers, json.loads(body) if body else None))
    return found


async def outcome(sides: Sides, packets: Iterable[bytes], turns: int = 40) -> Any:
    """Send packet by packet, with so many turns between; return all that can be seen of it."""
    connection, asked = sides
    for packet in packets:
        if connection.transport.inner.is_closing():
            break  # nothing more is read
        connection.data_received(packet)
        await steps(turns)
    seen = answers(wire_of(connection).written), connection.transport.is_closing(), asked.offered
    connection.connection_lost(None)
    await steps(turns)
    return seen


BODIES = st.sampled_from(
    [
        b"1",
        b"",
        b'{"n": 1}',
        b"[1, 2, 3]",
        b"[]",
        b'{"n": 1',
        b"n,temp\n1,2\n",
        b'"\xff"',
        b'"unforeseen"',
        b"[1.5, 1e400]",
        b" " * SMALL_LARGEST + b"1",
        gzip.compress(b"[1, 2]"),
        gzip.compress(b"a,b\n1,2\n"),
        gzip.compress(b" " * SMALL_LARGEST + b"1"),
        gzip.compress(b"n,temp\n1,2\n")[:-1],
        zlib.compress(b"1"),
        zstandard.compress(b'{"n": 1}'),
    ]
)
LINES = st.sampled_from(
    [
        LINE,
        LINE,
        LINE,
        LINE.replace(b"/p/", b"/a%2Fb/"),
        LINE.replace(b"/p/", b"/table/"),
        LINE.replace(b"/p/", b"/nobody/"),
        LINE.replace(b"/p/", b"/mute/"),
        LINE.replace(b"/messages", b"/messages?pretty=1"),
        LINE.replace(b"/messages", b"/messages/"),
        LINE.replace(b"/api", b"http://x/api"),
        LINE.replace(b"/api", b"http://[x/api"),
        LINE.replace(b"POST", b"GET"),
        LINE.replace(b"POST", b"PUT"),
        LINE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        LINE.replace(b"HTTP/1.1", b"HTTP/1.2"),
        LINE.replace(b"HTTP/1.1", b"HTTP/2.0"),
        b"GET /livez HTTP/1.1\r\n",
    ]
)
FIELDS = st.lists(
    st.sampled_from(
        [
            b"connection: close",
            b"connection: keep-alive",
            b"connection: upgrade\r\nupgrade: h2c",
            b"expect: 100-continue",
            b"content-encoding: gzip",
            b"content-encoding: zstd",
            b"content-encoding: deflate",
            b"content-encoding: br",
            b"content-encoding: identity",
            b"content-type: text/csv",
            b"x-key: s3cret",
            b"x: \x80\xff",
        ]
    ),
    max_size=2,
)
WITH_LENGTH = st.builds(
    lambda body, fields, line, key: request(body, *fields, line=line, key=key),
    BODIES,
    FIELDS,
    LINES,
    st.sampled_from([b"s3cret", b"s3cret", b"s3cret", b"wrong"]),
)
PARTS = [b"1", b"[1,", b"2]"]
IN_CHUNKS = st.one_of(
    st.builds(
        lambda parts, ends: chunked(*parts, ends=ends),
        st.lists(st.sampled_from([*PARTS, b" " * 30]), max_size=3),
        st.sampled_from([b"0\r\n\r\n", b"0\r\nx-key: wrong\r\n\r\n"]),
    ),
    # Not too large as well: which of the two faults is told depends on what it stands behind.
    st.builds(
        lambda parts, ends: chunked(*parts, ends=ends),
        st.lists(st.sampled_from(PARTS), max_size=3),
        st.sampled_from([b"zz\r\n", b""]),
    ),
)
BROKEN = st.sampled_from(
    [
        b"nonsense\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n",
        LINE + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        LINE + b"content-length: 5\r\n\r\n1",
        LINE + b"content-length: 1\r\ncontent-length: 2\r\n\r\n1",
        LINE + b"content-length: 99999999999\r\nx-key: s3cret\r\n\r\n",
    ]
)


@st.composite
def packets(draw: st.DrawFn) -> list[bytes]:
    """Draw some requests behind each other, cut anywhere."""
    requests = draw(st.lists(st.one_of(WITH_LENGTH, WITH_LENGTH, IN_CHUNKS, BROKEN), max_size=4))
    sent = b"".join(requests)
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    edges = [0, *cuts, len(sent)]
    return [sent[a:b] for a, b in pairwise(edges) if a < b]


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_both_ways_answer_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("resources.ingest", "process.posts"):
        monkeypatch.setattr(f"headrace.web.{module}.LARGEST", SMALL_LARGEST)
    monkeypatch.setattr(
        "headrace.web.process.boundedreading.FEW_DIGITS", len(str(SMALL_LARGEST)) - 1
    )
    seen = set[int]()

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(packets())
    @example([request(b"1", b"expect: 100-continue")])
    @example([request(b"1", b"expect: 100-Continue")])
    @example([request(b"1", b"content-encoding: gzip")])
    @example([request(b"1", b"content-encoding: br")])
    @example([request(gzip.compress(b"[1, 2]"), b"content-encoding: gzip")])
    @example([request(gzip.compress(b" " * SMALL_LARGEST), b"content-encoding: gzip")])
    @example([request(b"a,b\n1\n", line=LINE.replace(b"/p/", b"/table/"))])
    @example([request(b"1", b"connection: keep-alive", line=LINE.replace(b"/1.1", b"/1.0"))])
    @example([request(b"1", line=LINE.replace(b"/1.1", b"/2.0"))])
    @example([request(b"1", key=b"wrong")])
    @example([request(b"1", line=LINE.replace(b"/p/", b"/nobody/"))])
    @example([chunked(b" " * 30, b" " * 30)])
    @example([chunked(b" " * 30, b" " * 30, ends=b"")])
    @example([chunked(b"[1," + b" " * 30, b" " * 30 + b"2]")])
    @example([LINE + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"])
    @example([request(b'"unforeseen"')])
    @example([request(b"1")] * 3)
    def compare(sent: list[bytes]) -> None:
        async def both() -> tuple[Any, Any]:
            # Byte by byte: in one packet, what is wrong with the end of a body is seen before a task
            # that refuses its head has begun, and which of the two is told is a matter of the network.
            each = [bytes([byte]) for byte in b"".join(sent)]
            return (
                await outcome(side(Picky(), in_protocol=True), sent),
                await outcome(side(Picky(), in_protocol=False), each, turns=8),
            )

        here, there = asyncio.run(both())
        assert here == there
        seen.update(answer.status for answer in here[0])

    compare()
    assert seen >= {100, 202, 400, 401, 404, 413, 415, 500, 501, 503}


async def test_an_answer_has_the_headers_of_its_moment() -> None:
    for in_protocol in (True, False):
        connection, _ = side(Picky(), in_protocol=in_protocol)
        for date in (b"now", b"later"):
            connection.server_state.default_headers = [(b"date", date)]
            connection.data_received(request())
            await steps(20)

        dates = [dict(each.headers)["date"] for each in answers(wire_of(connection).written)]
        assert dates == ["now", "later"]
        connection.connection_lost(None)
