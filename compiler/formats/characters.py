"""The encodings of texts: bytes become characters, a piece at a time, and nothing is refused.

Bytes that are no text become U+FFFD, as browsers and most tools have it: one byte of noise should not cost
a reading. A mark of the byte order at the beginning is no part of the text.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator

ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16")
"""Those that a config can name. Without a mark of its order, UTF-16 has the lower byte first."""

PIECE = 32 * 1024
"""Bytes that become text at once."""
MOST_TEXT = 2 * 1024 * 1024
"""Characters of a text, which is put together at once. Where one is beyond U+FFFF, each takes four bytes:
to copy 8 MiB takes some 6 ms."""


def pieces(payload: bytes | bytearray, encoding: str) -> Iterator[str]:
    """Yield the text of a payload in pieces, at least one."""
    codec, start = _beginning(payload, encoding)
    if len(payload) <= PIECE:
        yield (payload[start:] if start else payload).decode(codec, "replace")
        return
    decode = getincrementaldecoder(codec)("replace").decode
    for begin in range(start, len(payload), PIECE):
        yield decode(payload[begin : begin + PIECE])
    if rest := decode(b"", True):  # half a character
        yield rest


def _beginning(payload: bytes | bytearray, encoding: str) -> tuple[str, int]:
    """Return the codec, and how many bytes are the mark of the byte order."""
    if encoding == "utf-16":
        if payload.startswith(BOM_UTF16_BE):
            return "utf-16-be", 2
        return "utf-16-le", 2 if payload.startswith(BOM_UTF16_LE) else 0
    return encoding, 3 if encoding == "utf-8" and payload.startswith(BOM_UTF8) else 0
