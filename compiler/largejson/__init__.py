"""Large JSON texts, decoded a slice at a time: no slice keeps the event loop from anybody for long.

`cutting.py` looks through the text and says where it may be cut, `longnumbers.py` what is left of numbers
that are longer than a slice, `growing.py` decodes the slices and puts the value together, `letting_go.py`
drops it again, a slice at a time as well. `alike.py` is the short way, for messages that begin alike, as
far as it goes. `encoding.py` is the way back, from the messages of a large batch to their text, and
`pieces.py` that of one large value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.largejson.alike import slices
from headrace.compiler.largejson.beginning import are_small, beginning
from headrace.compiler.largejson.cutting import SLICE, Cutting
from headrace.compiler.largejson.encoding import (
    ENCODED_AT_ONCE,
    SLICE_MESSAGES,
    TURN_SECONDS,
    WritingTurn,
    encode_each,
    encode_large,
    encode_large_lines,
    in_slices,
)
from headrace.compiler.largejson.growing import Growing
from headrace.compiler.largejson.letting_go import DecodedBatch, LargeList
from headrace.compiler.largejson.longnumbers import JsonBytes
from headrace.compiler.largejson.pieces import pieces

LARGE = 256 * 1024
"""Bytes of a text from which on it is decoded in slices: what is shorter takes some milliseconds."""


async def decode_large(text: JsonBytes, decoding: Decoding) -> DecodedBatch:
    """Return the messages of a large text: the items of a list, or the one that it is.

    Messages that begin alike take half as long again as at once, any other text some five times as long;
    others have their turn after each slice.

    Raises:
        NotJson: of whatever `jsontext.decode` refuses; of a text with several faults another may be told.
    """
    try:
        return await _decoded(text, decoding)
    except NotJson as cause:
        refusal = str(cause)
    # Another one: in the frames of the first lies what was decoded, as long as anybody has hold of it.
    raise NotJson(refusal)


async def _decoded(text: JsonBytes, decoding: Decoding) -> DecodedBatch:
    batch = DecodedBatch(asyncio.get_running_loop())
    decode, keeps_digits = decoding.decode_shallow, decoding.keeps_digits
    begun = 0
    for part in slices(text, decoding.decode):
        batch += part.messages
        batch.slices.append(len(part.messages))
        batch.add_containers(part.containers)
        begun = part.stop
        await asyncio.sleep(0)
    if begun < len(text) or not batch:
        cutting = Cutting(text, begun, keeps_digits=keeps_digits)
        for _ in cutting.slices():
            await asyncio.sleep(0)
        batch.add_containers(cutting.containers)
        for _ in Growing(text, cutting, decode, batch).slices():
            await asyncio.sleep(0)
    return batch


def one_in_slices(framed: bytes, decoding: Decoding, batch: DecodedBatch) -> Iterator[None]:
    """Put the one message into ``batch`` that a large text is, also if that is a list; yield now and then.

    ``framed`` is that text between brackets: to copy 16 MiB once more takes some milliseconds.

    Raises:
        NotJson: of whatever `jsontext.decode` refuses.
    """
    cutting = Cutting(framed, keeps_digits=decoding.keeps_digits)
    for _ in cutting.slices():
        yield
    batch.add_containers(cutting.containers)
    yield from Growing(framed, cutting, decoding.decode_shallow, batch).slices()
    if len(batch) != 1:
        raise NotJson("JSON is malformed: trailing characters")


MANY_BRACKETS = 8192
"""Each takes up to 0.4 µs where digits are kept: 256 KiB that nest, 130,000, held the loop for 48 ms."""


def takes_long(text: JsonBytes, decoding: Decoding) -> bool:
    """Return whether a text of more than a slice takes long to decode at once."""
    if len(text) >= LARGE or decoding.has_slow_numbers(bytes(text)):
        return True
    return decoding.keeps_digits and text.count(b"[") + text.count(b"{") > MANY_BRACKETS


__all__ = [
    "ENCODED_AT_ONCE",
    "LARGE",
    "MANY_BRACKETS",
    "SLICE",
    "SLICE_MESSAGES",
    "TURN_SECONDS",
    "DecodedBatch",
    "LargeList",
    "WritingTurn",
    "are_small",
    "beginning",
    "decode_large",
    "encode_each",
    "encode_large",
    "encode_large_lines",
    "in_slices",
    "one_in_slices",
    "pieces",
    "takes_long",
]
