"""What a journal has of one arrival: when it came and where from, and the payload as it came.

    1 byte      what the payload is: 0 as it came, 1 JSON whatever the format of the input says
    8 bytes     when it arrived: microseconds since 1970
    4 bytes     how long the next part is
    ...         where it came from: the metadata of its kind as JSON, an object; empty where there is none
    ...         the payload

Numbers are little endian. It is not decoded: numbers keep their digits, and a config that has changed
meanwhile reads it its own way.
"""

from __future__ import annotations

from datetime import timedelta
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from headrace.compiler.clock import EPOCH
from headrace.compiler.jsontext import encode

_HEAD = Struct("<BqI")
HEAD_BYTES = _HEAD.size
"""What an arrival takes beside its payload and its metadata."""


class StoredOrigin(NamedTuple):
    """Where something came from that is in a journal, and which entry of it that is."""

    number: int
    at: int
    """When it arrived. Units: microseconds since 1970."""
    about: bytes
    """The metadata of its kind, as JSON."""

    def describe(self) -> dict[str, Any]:
        """Return the metadata, with when it arrived."""
        about: dict[str, Any] = msgspec.json.decode(self.about) if self.about else {}
        moment = EPOCH + timedelta(microseconds=self.at)
        about["received_at"] = moment.isoformat(timespec="microseconds")
        return about


def packed(
    payload: bytes | bytearray, about: dict[str, Any], at: int, *, is_json: bool = False
) -> bytes:
    """Return what is put into the journal."""
    if not about:
        return _HEAD.pack(is_json, at, 0) + payload
    told = encode(about)
    return b"".join((_HEAD.pack(is_json, at, len(told)), told, payload))


def origin_of_entry(number: int, entry: bytes) -> StoredOrigin:
    """Return where an entry came from."""
    _, at, length = _HEAD.unpack_from(entry)
    return StoredOrigin(number, at, entry[HEAD_BYTES : HEAD_BYTES + length])


def payload_of(entry: bytes) -> tuple[bytes, bool]:
    """Return the payload of an entry, and whether it is JSON whatever the format of the input says."""
    start, is_json = start_of_payload(entry)
    return entry[start:], is_json


def start_of_payload(entry: bytes) -> tuple[int, bool]:
    """Return what `payload_of` does, but only where the payload begins in the entry."""
    is_json, _, length = _HEAD.unpack_from(entry)
    return HEAD_BYTES + length, bool(is_json)
