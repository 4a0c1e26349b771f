"""Parts: what an output that writes files or objects cuts its stream into.

A part has a name that sorts by time, a format, and a rule for when it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.language.fields import Integer
from headrace.compiler.language.records import Record, option


class Rotation(Record):
    """When a part is closed; the next one is opened by the next batch. Batches are never split."""

    interval_secs: int | None = option(
        Integer(min=1, max=10**9),
        "Close it this many seconds after it was opened, whether or not anything arrives.",
        default=None,
    )
    max_rows: int | None = option(
        Integer(min=0), "Close it once it holds this many messages; 0 is read as 1.", default=None
    )

    def is_full(self, rows: int) -> bool:
        """Return whether a part with so many messages is closed."""
        return self.max_rows is not None and rows >= max(self.max_rows, 1)


@dataclass(frozen=True)
class PartFormat:
    """How messages stand in a part: ``begin``, the batches with ``between`` between them, ``end``."""

    extension: str
    begin: bytes
    between: bytes
    end: bytes
    rows: Callable[[Batch], bytes]
    """Return the messages of one batch, at least one, as they stand in a part."""


FORMATS = {
    "ndjson": PartFormat("ndjson", b"", b"", b"", encode_lines),
    "json_array": PartFormat("json", b"[", b",", b"]", lambda batch: encode(batch)[1:-1]),
}
"""The formats by their word in a config."""


def part_name(opened: datetime, sequence: int, extension: str) -> str:
    """Return the name of a part: ``2026-03-01T08-00-00Z-000001.ndjson``.

    Units: ``opened`` is in UTC. It has no colons, which some file systems refuse.
    """
    return f"{opened:%Y-%m-%dT%H-%M-%SZ}-{sequence:06d}.{extension}"
