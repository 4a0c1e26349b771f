"""Posts to an input with a format of its own, and posts that are compressed: both ways answer the same."""

from __future__ import annotations

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from time import thread_time
from typing import Any

import pytest
import zstandard

from headrace.compiler.clock import Clock
from headrace.compiler.contentcodings import MOST_FRAMES, unpacked
from headrace.compiler.formats import (
    MOST_CELLS,
    MOST_MESSAGES,
    MOST_TEXT,
    CsvOptions,
    FormatOptions,
    PayloadFormat,
    decoded,
)
from headrace.compiler.largejson import letting_go
from headrace.compiler.runtime.wayin import (
    CELL_COUNTED,
    LEAST_COUNTED,
    FormattedWayIn,
    LargePosts,
    WayIn,
)
from headrace.web.resources import ingest
from tests.slowness import slowness
from tests.web.resources.ingest.posting_to import LARGE_BODY, Asked, post

MIB = 1024 * 1024
LONGEST = 0.02
"""Seconds of this thread's CPU time: those that other processes take from it do not count."""
GZIP = (b"content-encoding", b"gzip")


async def let_go() -> None:
    """Wait until what was decoded is gone: a loop that ends before leaves looks at everything put off."""
    gc.collect()
    for _ in range(2000):
        await asyncio.sleep(0)


class Reading(Asked):
    """An engine whose input has a format."""

    def __init__(self, word: str = "lines", **csv: Any) -> None:
        super().__init__()
        self.format = PayloadFormat.known[word](FormatOptions(csv=CsvOptions.load(csv)))

    def way_in(self, pipeline: str) -> WayIn:
        clock = Clock(asyncio.get_running_loop())
        return FormattedWayIn(pipeline, self, self.large, self.format, clock)


@pytest.fixture
def asked(request: pytest.FixtureRequest) -> Asked:
    word = getattr(request, "param", "lines")
    if word == "typed csv":
        return Reading("csv", types={"a": "json"})
    return Asked() if word == "json" else Reading(word)


def of(word: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("asked", [word], indirect=True)


def bodies(asked: Asked) -> list[list[Any]]:
    return [[*batch] for batch, _ in asked.offered]


async def test_a_post_is_a_batch_of_lines(way, asked) -> None:
    exchange = await post(way, b"a\r\nb\n", headers=[(b"content-type", b"application/json")])

    assert (exchange.status, exchange.json) == (202, {"accepted": 2})
    assert bodies(asked) == [[{"value": "a"}, {"value": "b"}]]


@of("text")
async def test_a_post_is_one_text(way, asked) -> None:
    assert (await post(way, b"")).json == {"accepted": 1}
    assert bodies(asked) == [[{"value": ""}]]


@of("ndjson")
async def test_a_post_is_a_batch_of_lines_of_json(way, asked) -> None:
    assert (await post(way, b'{"n": 1}\n\n[2]\n')).json == {"accepted": 2}
    assert bodies(asked) == [[{"n": 1}, [2]]]


@of("csv")
async def test_a_post_that_does_not_fit_is_refused_as_a_whole(way, asked) -> None:
    exchange = await post(way, b"a,b,c,d,e,f\n" + b"1,2,3,4,5,6\n" * 5 + b"1,2,3,4,5\n")

    assert exchange.status == 400
    assert exchange.json == {"error": "row 7: 5 cells, the header has 6"}
    assert asked.offered == []


@pytest.mark.parametrize("asked", ["lines", "ndjson", "csv"], indirect=True)
@pytest.mark.parametrize("more", [0, 1])
async def test_a_post_has_at_most_so_many_messages(way, asked, more: int) -> None:
    exchange = await post(way, b"1\n" * (MOST_MESSAGES + more + (asked.format.word == "csv")))

    if more:
        assert exchange.status == 413
        assert exchange.json == {"error": "more than 100,000 messages in one payload"}
        assert asked.offered == []
    else:
        assert exchange.json == {"accepted": MOST_MESSAGES}
    asked.offered.clear()
    await let_go()


@pytest.mark.parametrize("asked", ["lines", "ndjson", "csv", "text"], indirect=True)
async def test_nothing_is_taken_where_there_is_no_room(way, asked) -> None:
    asked.has_room = False

    for body in (b"1\n2\n", b"1\n2\n" * 20_000):
        exchange = await post(way, body)
        assert exchange.status == 503
        assert exchange.headers["retry-after"] == "1"


async def test_a_large_post_counts_until_it_is_let_go_of(way, asked) -> None:
    await post(way, b"longer than thirty-two characters\n" * 10_000)

    [(batch, _)] = asked.offered
    assert batch.__class__ is not list
    assert asked.sizes == [340_000]


async def test_large_posts_are_decoded_one_after_the_other_within_their_bound(way, asked) -> None:
    asked.large = LargePosts(700_000)

    exchanges = await asyncio.gather(*(post(way, b"line\n" * 60_000) for _ in range(3)))

    assert [each.status for each in exchanges] == [202, 202, 503]


SKIPPED_FRAME = b"\x50\x2a\x4d\x18\0\0\0\0"
"""What is not unpacked. Source: RFC 8878, section 3.1.2."""
PACKED = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


@of("json")
@pytest.mark.parametrize("coding", PACKED)
async def test_a_body_may_be_compressed(way, asked, coding: str) -> None:
    field = (b"content-encoding", coding.upper().encode())

    for body in (b'[{"n": 1}, 2]', LARGE_BODY):
        exchange = await post(way, PACKED[coding](body), headers=[field])
        assert exchange.status == 202
    assert [len(each) for each in bodies(asked)] == [2, 20_001]
    assert bodies(asked)[0] == [{"n": 1}, 2]
    assert asked.sizes == [2 * LEAST_COUNTED, 20_001 * LEAST_COUNTED]


@of("csv")
async def test_a_table_may_be_compressed(way, asked) -> None:
    exchange = await post(way, gzip.compress(b"a,b\n1,2\n3\n"), headers=[GZIP])
    assert exchange.json == {"error": "row 3: 1 cell, the header has 2"}

    exchange = await post(way, gzip.compress(b"a,b\n" + b"1,2\n" * 90_000), headers=[GZIP])
    assert exchange.json == {"accepted": 90_000}


@of("json")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("damage", [b"", b"junk", None])
async def test_what_is_not_in_its_coding_is_refused(way, asked, coding: str, damage: Any) -> None:
    packed = PACKED[coding](b"1" * 1000)
    body = packed[:-6] if damage is None else damage

    exchange = await post(way, body, headers=[(b"content-encoding", coding.encode())])

    assert exchange.status == 400
    assert exchange.json["error"].startswith(f"the body is not {coding}: ")
    assert asked.offered == []


@of("json")
async def test_what_was_unpacked_and_is_no_json_is_told_as_any_other(way, asked) -> None:
    for times in (1, 60_000):
        body = b"n,temp\n" * times
        packed, plain = (
            await post(way, gzip.compress(body), headers=[GZIP]),
            await post(way, body),
        )
        assert (packed.status, packed.json) == (plain.status, plain.json)
        assert packed.status == 400


@of("json")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
async def test_a_body_is_bounded_by_what_it_unpacks_to(
    way, asked, coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "LARGEST", 100)
    field = (b"content-encoding", coding.encode())

    most = await post(way, PACKED[coding](b" " * 99 + b"1"), headers=[field])
    more = await post(way, PACKED[coding](b" " * 100 + b"1"), headers=[field])

    assert most.status == 202
    assert more.status == 413
    assert more.json == {"error": "the body is larger than 100 bytes when it is unpacked"}


@pytest.mark.parametrize(
    ("coding", "piece", "said"),
    [
        ("gzip", gzip.compress(b""), "members of gzip"),
        ("zstd", zstandard.compress(b""), "frames of zstd"),
        ("zstd", SKIPPED_FRAME, "frames of zstd"),
    ],
    ids=["members", "frames", "skipped frames"],
)
async def test_a_body_has_at_most_so_many_frames(
    way, asked, coding: str, piece: bytes, said: str
) -> None:
    field = (b"content-encoding", coding.encode())
    body = piece * (MOST_FRAMES - 1) + PACKED[coding](b"a\n")

    most = await post(way, body, headers=[field])
    more = await post(way, piece + body, headers=[field])

    assert most.json == {"accepted": 1}
    assert more.status == 400
    assert more.json == {"error": f"the body has more than 1,000 {said}"}


async def test_identity_beside_a_coding_is_none(way, asked) -> None:
    fields = [(b"content-encoding", b"identity"), (b"content-encoding", b"gzip")]

    assert (await post(way, gzip.compress(b"a"), headers=fields)).status == 202


@cache
def bomb(coding: str) -> bytes:
    zeros = b"\n" * MIB
    if coding == "zstd":
        packer = zstandard.ZstdCompressor(level=9).compressobj()
        return b"".join(packer.compress(zeros) for _ in range(1024)) + packer.flush()
    zipper = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    return b"".join(zipper.compress(zeros) for _ in range(128)) + zipper.flush()


EMPTY_BLOCK = bytes.fromhex("ec1d036018306c244992244992b46ddbb66ddbb66ddbdb6ddbb6cda4b68d47")
"""Nothing but its codes: zlib takes 3 µs to make tables of them, and nothing comes of it."""
EMPTY_BLOCKS = EMPTY_BLOCK * (2 * MIB // 31) + b"\xed" + EMPTY_BLOCK[1:]

WIDE = "\U00010400".encode()
"""Beside it each character of a text takes four bytes."""

HOSTILE = {
    "gzip bomb": ("json", partial(bomb, "gzip"), b"gzip", 413),
    "deflate bomb": ("json", partial(bomb, "deflate"), b"deflate", 413),
    "empty blocks": ("json", EMPTY_BLOCKS, b"deflate", 400),
    "few empty blocks": ("json", EMPTY_BLOCKS[: 512 * 1024], b"deflate", 400),
    "zstd bomb": ("json", partial(bomb, "zstd"), b"zstd", 413),
    "empty members": ("json", gzip.compress(b"") * 50_000, b"gzip", 400),
    "empty frames": ("json", zstandard.compress(b"") * 50_000, b"zstd", 400),
    "skipped frames": ("json", SKIPPED_FRAME * (MIB // 4), b"zstd", 400),
    "lines of one character": ("lines", b"a\n" * MIB, b"", 413),
    "lines of nothing": ("lines", b"\n" * (4 * MIB), b"", 202),
    "lines of json": ("ndjson", b"1\n" * MIB, b"", 413),
    "lines of slow numbers": ("ndjson", b"9e307\n" * 99_000, b"", 202),
    "long lines of slow numbers": (
        "ndjson",
        (b"[" + b"1e300," * 5000 + b"1]\n") * 20 + (b"[" + b"1e300," * 2500 + b"1]\n") * 20,
        b"",
        202,
    ),
    "lines of lists": ("ndjson", (b"[" + b"[]," * 10_000 + b"1]\n") * 50, b"", 202),
    "one line of everything": ("ndjson", b"[" + b"[]," * 300_000 + b"1]", b"", 202),
    "one text": ("text", "é".encode() * (4 * MIB), b"", 413),
    "a text that ends wide": ("text", b"a" * (MOST_TEXT - 1) + WIDE, b"", 202),
    "a line that begins wide": ("lines", WIDE + b"a" * (4 * MIB) + b"\r\nx", b"", 400),
    "long wide lines": ("lines", (WIDE + b"\r" * (MOST_TEXT - 1) + b"\r\n") * 3, b"", 202),
    "a row of a million cells": ("csv", b"a,b\n" + b"," * MIB, b"", 400),
    "a header of a million cells": ("csv", b"a," * MIB, b"", 400),
    "wide rows": (
        "csv",
        b",".join(b"c%d" % n for n in range(1000)) + b"\n" + (b"," * 999 + b"\n") * 2000,
        b"",
        202,
    ),
    "narrow rows": ("csv", b"a\n" + b"1\n" * 90_000, b"", 202),
    "an open quote": ("csv", b'a,b\n"' + b"a,\n" * (5 * MIB), b"", 400),
    "an open quote before empty lines": ("csv", b'a,b\n"' + b"\n" * (5 * MIB), b"", 400),
    "quoted empty lines": ("csv", b"a\n" + (b'"' + b"\n" * 120_000 + b'"\n') * 40, b"", 202),
    "cells that are slow numbers": ("typed csv", b"a\n" + b"1e300\n" * 90_000, b"", 202),
    "cells of slow numbers": (
        "typed csv",
        b"a\n" + (b'"[' + b"1e300," * 2500 + b'1]"\n') * 50,
        b"",
        202,
    ),
    "cells of lists": ("typed csv", b"a\n" + (b'"[' + b"[]," * 40_000 + b'1]"\n') * 20, b"", 202),
    "quotes": ("csv", b"a\n" + b'"""""",\n' * 90_000, b"", 400),
}


@pytest.mark.timed
@pytest.mark.parametrize(
    ("asked", "body", "coding", "status"), HOSTILE.values(), ids=HOSTILE, indirect=["asked"]
)
async def test_no_turn_of_the_loop_is_long(
    way, asked, body: bytes | Callable[[], bytes], coding: bytes, status: int
) -> None:
    sent = body() if callable(body) else body
    field = [(b"content-encoding", coding)] if coding else []

    for _ in range(3):  # beside other work all takes longer, now and then
        exchange = way.exchange([sent], headers=field)
        longest = await longest_turn(exchange, asked)
        assert exchange.status == status
        if longest < LONGEST:
            break

    assert longest < LONGEST * slowness()


async def longest_turn(exchange: Any, asked: Asked) -> float:
    """Return the seconds of the longest turn while a post is answered, and let go of what it brought."""
    longest, is_over = [], False

    async def watch() -> None:
        while not is_over:
            began = thread_time()
            await asyncio.sleep(0)
            longest.append(thread_time() - began)

    gc.collect()
    # Nothing that another test has made is looked through here. Of what is made here a look at all of it is
    # put off where it is much: the next test.
    gc.disable()
    try:
        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        await exchange.run()
        asked.offered.clear()
        for _ in range(2000):
            await asyncio.sleep(0)
        is_over = True
        await watching
    finally:
        gc.enable()
    return max(longest)


def test_of_what_unpacks_to_nothing_little_is_read_at_once() -> None:
    pieces = [*unpacked("deflate", EMPTY_BLOCKS, MIB)]

    assert not any(pieces)
    assert len(pieces) > len(EMPTY_BLOCKS) // (8 * 1024)


MANY_LISTS = {
    "lines of lists": ("ndjson", (b"[" + b"[]," * 40_000 + b"1]\n") * 3),
    "long lines of lists": ("ndjson", (b"[" + b"[]," * 120_000 + b"1]\n")),
    "lines of which one is none": ("ndjson", (b"[" + b"[]," * 9_000 + b"1]\n") * 12 + b"[1,\n"),
    "cells of lists": ("typed csv", b"a\n" + (b'"[' + b"[]," * 40_000 + b'1]"\n') * 3),
    "rows of which one is none": (
        "typed csv",
        b"a\n" + (b'"[' + b"[]," * 40_000 + b'1]"\n') * 3 + b"x,y\n",
    ),
}


@pytest.fixture
def _nothing_is_put_off() -> Iterator[None]:
    """Have nothing put off, also after a test that failed: its traceback holds what it decoded."""
    for each in [*letting_go._PutOff.asking]:
        each.end()
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_nothing_is_put_off")
@pytest.mark.parametrize("digits", [False, True])
@pytest.mark.parametrize(("asked", "body"), MANY_LISTS.values(), ids=MANY_LISTS, indirect=["asked"])
async def test_a_look_at_everything_waits_while_there_are_many_lists(
    asked, body: bytes, digits: bool
) -> None:
    usual = gc.get_threshold()
    asked.decoding.keep_digits(keeps=digits)

    batch = decoded(asked.format, body, asked.decoding, lambda *_: None)
    put_off = gc.get_threshold()
    del batch
    await let_go()

    assert put_off[2] > 1000 * usual[2]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("asked", ["csv"], indirect=True)
async def test_a_table_has_at_most_so_many_cells(way, asked) -> None:
    names = b",".join(b"c%d" % number for number in range(1000)) + b"\n"
    row = b"," * 999 + b"\n"

    exchange = await post(way, names + row * (MOST_CELLS // 1000))
    assert exchange.json == {"accepted": MOST_CELLS // 1000}

    exchange = await post(way, names + row * (MOST_CELLS // 1000 + 1))
    assert exchange.status == 413
    assert exchange.json == {"error": "more than 2,000,000 cells in one payload"}
    asked.offered.clear()
    await let_go()


@of("csv")
@pytest.mark.parametrize("rows", [2, 2_000])
async def test_each_cell_of_a_table_that_waits_counts_beside_its_text(
    way, asked, rows: int
) -> None:
    body = b",".join(b"c%d" % number for number in range(100)) + b"\n" + (b"," * 99 + b"\n") * rows

    for each, fields in ((body, ()), (gzip.compress(body), [GZIP])):
        await post(way, each, headers=fields)

    assert asked.sizes == [len(body) + CELL_COUNTED * 100 * rows] * 2
    asked.offered.clear()
    await let_go()


BOUNDED = ("gzip bomb", "zstd bomb", "lines of one character", "a row of a million cells")


@pytest.mark.parametrize(
    ("asked", "body", "coding", "status"),
    [HOSTILE[each] for each in BOUNDED],
    ids=BOUNDED,
    indirect=["asked"],
)
async def test_what_is_refused_takes_no_more_memory_than_a_body_and_its_messages(
    way, asked, body: bytes | Callable[[], bytes], coding: bytes, status: int
) -> None:
    sent = body() if callable(body) else body
    gc.collect()
    tracemalloc.start()
    exchange = await post(way, sent, headers=[(b"content-encoding", coding)] if coding else [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert exchange.status == status
    assert peak < 48 * MIB
    await let_go()


@pytest.mark.long
@pytest.mark.parametrize("asked", ["csv"], indirect=True)
@pytest.mark.parametrize("cell", [b"", b"ab"])
async def test_a_table_of_as_many_cells_as_may_be_takes_so_much_memory(
    way, asked, cell: bytes
) -> None:
    """What the page says: 40 bytes a cell, and 50 more of one that is a text of its own."""
    names = b",".join(b"c%d" % number for number in range(1000)) + b"\n"
    body = names + (b",".join([cell] * 1000) + b"\n") * (MOST_CELLS // 1000)
    gc.collect()
    tracemalloc.start()
    exchange = await post(way, body)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert exchange.status == 202
    assert held < MOST_CELLS * (90 if cell else 40)
    asked.offered.clear()
    await let_go()
