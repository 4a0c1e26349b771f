"""What an OPC UA server may send: chunks as they were agreed on, and nothing that makes others wait."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.errors import Unreachable
from headrace.connectors.opcua.values import Malformed
from headrace.connectors.opcua.wire import CHUNK_BYTES, SMALLEST_CHUNK, Chunks
from tests.nats_sides import listening
from tests.opcua_sides import context, source

ACKNOWLEDGED = b"ACKF" + struct.pack("<6I", 28, 0, CHUNK_BYTES, CHUNK_BYTES, 0, 0)
MIB = 1 << 20


def head(length: int) -> bytes:
    return b"MSGF" + struct.pack("<I", length)


def chunk(length: int) -> bytes:
    return head(length) + bytes(length - 8)


@given(
    lengths=st.lists(st.integers(SMALLEST_CHUNK, 300) | st.just(CHUNK_BYTES), max_size=5),
    cuts=st.lists(st.integers(0, 5 * CHUNK_BYTES), max_size=8),
)
def test_chunks_are_whole_however_they_come(lengths: list[int], cuts: list[int]):
    sent = b"".join(map(chunk, lengths))
    chunks, came = Chunks(), []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(sent)], strict=True):
        came.append(chunks.cut(sent[begin:end]))

    assert b"".join(came) == sent
    borders = {sum(lengths[:count]) for count in range(len(lengths) + 1)}
    assert {sum(map(len, came[:count])) for count in range(len(came) + 1)} <= borders


@pytest.mark.parametrize("length", [0, 8, SMALLEST_CHUNK - 1, CHUNK_BYTES + 1, 1 << 30, 2**32 - 1])
def test_a_chunk_of_another_size_than_agreed_is_told_by_its_head(length: int):
    chunks = Chunks()
    assert chunks.cut(chunk(20) + head(length)[:7]) == chunk(20)

    with pytest.raises(Malformed):
        chunks.cut(head(length)[7:])


def pouring(answers: Sequence[bytes], poured: bytes, sent: list[int]) -> Any:
    """Return a server that gives these answers, and then the same again and again until nobody takes it.

    ``sent`` has how many octets of that it could send.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(CHUNK_BYTES)
            writer.write(answer)
        await reader.read(CHUNK_BYTES)
        try:
            while sum(sent) < 256 * MIB:
                writer.write(poured)
                await writer.drain()
                sent.append(len(poured))
        except ConnectionError:
            pass

    return serve


@pytest.mark.parametrize(
    ("answers", "poured"),
    [
        pytest.param([ACKNOWLEDGED + head(1 << 30)], b"x" * MIB, id="a chunk of a GiB"),
        pytest.param([], b"\xff" * MIB, id="ones"),
        pytest.param([], bytes(MIB), id="zeros"),
        pytest.param([ACKNOWLEDGED], ACKNOWLEDGED * 4096, id="acknowledgements"),
        pytest.param([ACKNOWLEDGED], chunk(12) * 4096, id="empty chunks"),
    ],
)
async def test_a_server_that_pours_out_what_is_no_opc_ua_is_left(answers, poured, caplog):
    sent: list[int] = []
    async with listening(pouring(answers, poured, sent)) as address:
        with pytest.raises(Unreachable) as raised:
            await anext(source(context(f"opc.tcp://{address}/"), "Temp").read())

    assert str(raised.value) == f"{address} does not answer as an OPC UA server does"
    assert sum(sent) < 64 * MIB
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
