"""Parts: what an output that writes files or objects cuts its stream into.

A part has a name that sorts by time, a format, and a rule for when it is closed.
"""

from __future__ import annotations

import gzip
import re
from asyncio import TimerHandle
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.largejson import encode_large, encode_large_lines
from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import Record, option


class Rotation(Record):
    """When a part is closed; the next one is opened by the next batch. Batches are never split."""

    interval_secs: int | None = option(
        Integer(min=1, max=10**9),
        "Close it this many seconds after it was opened, whether or not anything arrives.",
        default=None,
        elsewhere="every interval period seconds timeout_secs",
    )
    max_rows: int | None = option(
        Integer(min=0, max=10**9),
        "Close it once it holds this many messages; 0 is read as 1.",
        default=None,
        elsewhere="count max_events max_messages rows size",
    )

    def is_full(self, rows: int) -> bool:
        """Return whether a part with so many messages is closed."""
        return self.max_rows is not None and rows >= max(self.max_rows, 1)

    def timer(self, clock: Clock, close: Callable[[], None]) -> TimerHandle | None:
        """Have a part that is opened now closed on time; None if its time has no end."""
        seconds = self.interval_secs
        return None if seconds is None else clock.call_at(clock.monotonic() + seconds, close)


@dataclass(frozen=True)
class PartFormat:
    """How messages stand in a part: ``begin``, the batches with ``between`` between them, ``end``."""

    extension: str
    media_type: str
    begin: bytes
    between: bytes
    end: bytes
    rows: Callable[[Batch], bytes]
    """Return the messages of one batch, at least one, as they stand in a part."""
    large_rows: Callable[[Batch, Clock], Awaitable[bytes]]
    """The same for a large batch."""


FORMATS = {
    "ndjson": PartFormat(
        "ndjson", "application/x-ndjson", b"", b"", b"", encode_lines, encode_large_lines
    ),
    "json_array": PartFormat(
        "json",
        "application/json",
        b"[",
        b",",
        b"]",
        lambda batch: encode(batch)[1:-1],
        partial(encode_large, begin=b"", end=b""),
    ),
}
"""The formats by their word in a config."""


@dataclass(frozen=True)
class Packing:
    """How a part that is closed is compressed, and what tells so to whoever finds it."""

    extension: str
    media_type: str
    pack: Callable[[bytes], bytes]
    """Compress; for a thread."""


def _zstandard(body: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(body)


OTHER_FORMATS = {
    "ndjson": "json_lines jsonl jsonlines ldjson lines newline_delimited",
    "json_array": "array json",
}
"""What the formats are called elsewhere, by our word."""

PACKINGS = {
    "gzip": Packing("gz", "application/gzip", partial(gzip.compress, compresslevel=6, mtime=0)),
    "zstd": Packing("zst", "application/zstd", _zstandard),
}
"""The ways to compress by their word in a config."""


def part_name(opened: datetime, sequence: int, extension: str) -> str:
    """Return the name of a part: ``2026-03-01T08-00-00Z-000001.ndjson``.

    Units: ``opened`` is in UTC. It has no colons, which some file systems refuse.
    """
    return f"{opened:%Y-%m-%dT%H-%M-%SZ}-{sequence:06d}.{extension}"


_NUMBER = re.compile(r"(?<=Z-)\d{6,15}(?=\.[^/]*$)")


def renumbered(path: str, sequence: int) -> str:
    """Return the path of a part, whose last step `part_name` made, with another number."""
    return _NUMBER.sub(f"{sequence:06d}", path)


def number_of(path: str) -> int | None:
    """Return the number of a part, if `part_name` made its name."""
    found = _NUMBER.search(path)
    return None if found is None else int(found[0])
