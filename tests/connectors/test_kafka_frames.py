"""Answers of a broker that are longer than any, or none at all: they are refused before they are kept."""

from __future__ import annotations

import logging
import struct

import pytest

from headrace.compiler.errors import Unreachable
from tests.evil import evil
from tests.kafka_sides import context, sink, source

NONSENSE = "answers, and not as Kafka does"


async def why(where: str) -> str:
    """Return why both sides do not come up, which is one reason."""
    said = []
    for attempt in (anext(source(context(where), "t").read()), sink(context(where), "t").start()):
        with pytest.raises(Unreachable) as lost:
            await attempt
        said.append(str(lost.value))
    assert said[0] == said[1]
    return said[0]


async def test_an_answer_that_is_too_long_is_not_read():
    async with evil(b"\x7f\xff\xff\xff", b"x" * 65536) as server:
        said = await why(server.where)

        assert said == f"{server.where} {NONSENSE}: more than 128 MiB at once"
        assert server.taken < 32 * 1024 * 1024


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xff\xff\xff",
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ii", 4, 1),
        struct.pack(">iihi", 10, 1, 0, -1),
        struct.pack(">iihihhh", 16, 1, 0, 1, 18, 3, 0),
    ],
    ids=["negative", "short", "empty", "no versions", "versions upside down"],
)
async def test_what_no_broker_says_is_told_as_that_and_logs_no_traceback(answer, caplog):
    caplog.set_level(logging.INFO)

    async with evil(answer, b"") as server:
        assert await why(server.where) == f"{server.where} {NONSENSE}"

    assert [each for each in caplog.records if each.exc_info] == []
