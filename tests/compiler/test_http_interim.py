"""A server that floods its client with interim answers: every client of ours gives it up at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.errors import BatchFailed
from headrace.compiler.http_interim import MOST_INTERIM, PIECE, TOO_MANY, Handler
from headrace.connectors.http import HttpOutput
from tests import flooding
from tests.doubles import StubContext

MIB = 2**20
FLOOD = 64
"""MiB of interim answers: two and a half million of them."""


@contextmanager
def flooder(after: int = 0) -> Iterator[tuple[str, Callable[[], int]]]:
    """Run the server; give its url, and what tells the bytes that the next connection was sent."""
    command = [sys.executable, str(Path(flooding.__file__)), str(FLOOD), str(after)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        lines = program.stdout
        try:
            yield f"http://127.0.0.1:{lines.readline().strip()}/", lambda: int(lines.readline())
        finally:
            program.kill()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the answers, interim ones included, that are made of what was received."""
    codes: list[int] = []
    feed = Handler.feed_data

    def counted(self: Handler, data: Any, size: int = 0) -> None:
        codes.append(data[0].code)
        feed(self, data, size)

    monkeypatch.setattr(Handler, "feed_data", counted)
    return codes


async def test_a_flood_of_interim_answers_fails_the_batch_and_is_hardly_read(
    taken: list[int],
) -> None:
    with flooder() as (url, sent):
        sink = HttpOutput.load({"url": url}).open(StubContext())
        await sink.start()
        with pytest.raises(BatchFailed) as failed:
            await sink.write([1])
        await sink.finish()

        assert sent() < FLOOD * MIB / 2

    assert str(failed.value) == f"POST {url}: {TOO_MANY}"
    assert MOST_INTERIM < len(taken) <= MOST_INTERIM + PIECE // len(flooding.INTERIM) + 1


async def test_a_connection_that_is_flooded_while_it_waits_is_given_up(taken: list[int]) -> None:
    with flooder(after=1) as (url, sent):
        sink = HttpOutput.load({"url": url}).open(StubContext())
        await sink.start()
        await sink.write([1])
        while len(taken) <= MOST_INTERIM:
            with suppress(BatchFailed):  # where it is the flooded one that is used again
                await sink.write([2])

        await sink.finish()
        assert sent() < FLOOD * MIB / 2

    assert taken.count(200) >= 1
