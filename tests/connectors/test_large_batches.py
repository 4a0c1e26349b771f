"""Outputs that are given a large batch: encoded in turns with others, written as one in one go is."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.delivery import LARGE_BATCH, Delivery, Window
from headrace.compiler.edges import Sink
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.largejson import ENCODED_AT_ONCE, encoding
from headrace.compiler.runtime.outputs import Writer, writer
from headrace.connectors.file import FileConnection, FileOutput
from headrace.connectors.http import HttpOutput
from headrace.connectors.stdout import LineWriter, StdoutSink
from tests.doubles import StubContext, TickingClock
from tests.peer import peer
from tests.virtual import virtual

LARGE = [{"n": n, "s": "ü"} for n in range(10 * LARGE_BATCH)]
SMALL = [{"n": -1, "s": "ü"}]
BAD = [*LARGE, "\ud800", *LARGE]


class Turns:
    """Counts the turns of the loop, and what was encoded in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = Counter[int]()
        self._turns = 0
        monkeypatch.setattr(encoding, "encode", self._counting(encode))
        monkeypatch.setattr(encoding, "encode_lines", self._counting(encode_lines))

    def _counting(self, real: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        def encoded(batch: Any) -> bytes:
            self.made[self._turns] += len(batch)
            return real(batch)

        return encoded

    @property
    def had(self) -> int:
        """How many there were."""
        return self._turns

    async def count(self) -> None:
        """Have a turn whenever others do."""
        while True:
            self._turns += 1
            await asyncio.sleep(0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


def context(folder: Path | None = None) -> StubContext:
    connections = {} if folder is None else {"disk": FileConnection.load({"root": str(folder)})}
    return StubContext(clock=TickingClock(), data_dir=folder, connections=connections)


def file(folder: Path, format: str = "ndjson", **options: Any) -> Sink:
    document = {"connection": "disk", "path": "out", "format": format, **options}
    return FileOutput.load(document).open(context(folder))


def content(folder: Path) -> bytes:
    """Return what was written to files."""
    return b"".join(part.read_bytes() for part in sorted(folder.glob("out/*")))


def writing_to(sink: Sink, reports: list[BaseException]) -> Writer:
    place = context()
    place.report = lambda cause, _=(): reports.append(cause)  # type: ignore
    return writer(sink, place)  # type: ignore[arg-type]


async def written(sink: Sink, *batches: list[Any]) -> list[BaseException]:
    """Write batches as a pipeline does; return what failed."""
    reports: list[BaseException] = []
    it, window = writing_to(sink, reports), Window()
    await it.start()
    for batch in batches:
        window.take()
        it.take(Delivery(batch, window))
    await it.drain()
    await it.finish()
    assert window.used == 0
    return reports


@virtual
async def test_a_large_batch_and_one_behind_it_are_files_as_small_ones_are(
    tmp_path: Path, turns: Turns
) -> None:
    counting = asyncio.ensure_future(turns.count())

    assert await written(file(tmp_path), SMALL, LARGE, SMALL) == []

    counting.cancel()
    assert content(tmp_path) == encode_lines([*SMALL, *LARGE, *SMALL])
    assert sum(turns.made.values()) == len(LARGE)
    assert max(turns.made.values()) <= 3 * ENCODED_AT_ONCE


@virtual
async def test_a_large_batch_is_part_of_an_array(tmp_path: Path, turns: Turns) -> None:
    counting = asyncio.ensure_future(turns.count())

    assert await written(file(tmp_path, "json_array"), LARGE, SMALL, LARGE) == []

    counting.cancel()
    assert content(tmp_path) == encode([*LARGE, *SMALL, *LARGE])
    assert max(turns.made.values()) <= 3 * ENCODED_AT_ONCE


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"format": "text", "template": "{n}{s}"}, "{}ü\n"),
        ({"format": "csv", "csv": {"columns": ["n", "s"], "header": False}}, "{},ü\n"),
    ],
    ids=["text", "csv"],
)
@virtual
async def test_texts_and_rows_of_a_large_batch_are_made_in_turns_with_others(
    tmp_path: Path, turns: Turns, options: dict[str, Any], line: str
) -> None:
    counting = asyncio.ensure_future(turns.count())

    assert await written(file(tmp_path, **options), SMALL, LARGE) == []

    counting.cancel()
    assert content(tmp_path).decode() == "".join(line.format(n) for n in [-1, *range(len(LARGE))])
    assert turns.had >= len(LARGE) / (3 * ENCODED_AT_ONCE)


@virtual
async def test_a_large_batch_is_one_line_of_standard_output(turns: Turns) -> None:
    descriptor = os.memfd_create("stdout")
    sink = StdoutSink("p1", context().clock, LineWriter(descriptor))
    counting = asyncio.ensure_future(turns.count())

    assert await written(sink, SMALL, LARGE, SMALL) == []

    counting.cancel()
    lines = os.pread(descriptor, 1 << 26, 0).splitlines()
    os.close(descriptor)
    assert [json.loads(line)["count"] for line in lines] == [1, len(LARGE), 1]
    assert lines[1].endswith(b'"pipeline":"p1","count":20480,"batch":' + encode(LARGE) + b"}")
    assert max(turns.made.values()) <= 3 * ENCODED_AT_ONCE


@pytest.mark.parametrize("format", ["ndjson", "json_array"])
@virtual
async def test_a_large_batch_with_a_message_that_cannot_be_written_fails_whole(
    tmp_path: Path, format: str
) -> None:
    failed = await written(file(tmp_path, format), LARGE, BAD, SMALL)

    assert [type(each) for each in failed] == [UnicodeEncodeError]
    messages = [*LARGE, *SMALL]
    whole = encode_lines(messages) if format == "ndjson" else encode(messages)
    assert content(tmp_path) == whole


@virtual
async def test_of_a_large_batch_that_is_given_up_nothing_is_written(tmp_path: Path) -> None:
    reports: list[BaseException] = []
    it, window = writing_to(file(tmp_path), reports), Window()
    await it.start()

    it.take(Delivery(LARGE, window))
    it.take(Delivery(SMALL, window))
    for _ in range(5):
        await asyncio.sleep(0)
    lost = it.abandon()
    await it.drain()
    await it.finish()

    assert lost == len(LARGE) + len(SMALL)
    assert [str(each) for each in reports] == ["stopped before everything was written"] * 2
    assert content(tmp_path) == b""


async def test_a_large_batch_is_one_request(turns: Turns) -> None:
    counting = asyncio.ensure_future(turns.count())
    async with peer() as server:
        sink = HttpOutput.load({"url": server.url("/in")}).open(context())

        assert await written(sink, LARGE, SMALL) == []

        assert server.bodies() == [encode(LARGE), encode(SMALL)]
    counting.cancel()
    assert max(turns.made.values()) <= 3 * ENCODED_AT_ONCE


@pytest.mark.long
async def test_each_message_of_a_large_batch_is_a_request_if_that_is_wanted() -> None:
    async with peer() as server:
        sink = HttpOutput.load({"url": server.url("/in"), "body": "message"}).open(context())

        assert await written(sink, [*range(LARGE_BATCH + 1)]) == []

        assert server.bodies() == [b"%d" % n for n in range(LARGE_BATCH + 1)]
