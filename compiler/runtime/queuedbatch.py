"""What the queue of an output has of one batch: how many messages it is, and the messages.

    4 bytes     how many messages
    ...         the messages: a JSON array, digits as they were

Numbers are little endian.
"""

from __future__ import annotations

from struct import Struct

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.jsontext import Decoding, encode
from headrace.compiler.largejson import SLICE, decode_large, encode_large

_HEAD = Struct("<I")
START = _HEAD.size
"""Where in an entry its messages begin, which are a JSON array."""


def entry_of_batch(batch: Batch) -> bytes | None:
    """Return what is stored of a batch; None: it is large, see `entry_of_large`."""
    return None if is_large(batch) else _HEAD.pack(len(batch)) + encode(batch)


async def entry_of_large(batch: Batch, clock: Clock) -> bytes:
    """Return what is stored of a batch; others have their turn meanwhile."""
    return await encode_large(batch, clock, begin=_HEAD.pack(len(batch)) + b"[")


def count_of_entry(entry: bytes) -> int:
    """Return how many messages an entry is."""
    count: int = _HEAD.unpack_from(entry)[0]
    return count


async def batch_of_entry(entry: bytes, decoding: Decoding) -> Batch:
    """Return the messages of an entry; of a large one others have their turn meanwhile."""
    text = entry[_HEAD.size :]
    if len(text) >= SLICE:
        return await decode_large(text, decoding)
    batch: Batch = decoding.decode(text)
    return batch
