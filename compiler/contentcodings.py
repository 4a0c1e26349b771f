"""Content codings of HTTP: a body that was compressed is unpacked in pieces, and only up to a bound.

One coding at a time: `gzip` with up to 1,000 members, `zstd` with up to 1,000 frames whose windows are at
most 8 MiB, `deflate`, which is zlib's format or, as some write it, the bare one.

Source: RFC 9110, section 8.4; RFC 1950 to 1952; RFC 8878
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.compiler.errors import HeadraceError

PIECE = 256 * 1024
"""Bytes that are unpacked at once, of what zlib wrote."""
_INPUT = 8 * 1024
"""Bytes that zlib is given at once, of which it may make nothing: tables of codes that no character follows
take a millisecond. What it leaves is copied."""
ZSTD_INPUT = 128
"""Bytes that zstd is given at once. It has no bound for what it makes of them: of the densest, 4 bytes make
128 KiB, so this is 4 MiB in some two milliseconds."""
ZSTD_WINDOW = 8 * 1024 * 1024
"""Bytes that it may look back, which is what it needs as memory. Source: RFC 8878, section 3.1.1.1.2."""
MOST_FRAMES = 1_000
"""Frames of zstd, with those that are skipped, or members of gzip. Each takes some 10 µs, whatever it
holds: of two million, 16 MiB, that was 20 seconds."""
_ENDS_EARLY = "it ends too early"

PackedBody = bytes | bytearray


class NotUnpacked(HeadraceError, ValueError):
    """A body is not in the coding that its head names."""

    def __init__(self, coding: str, why: str) -> None:
        super().__init__(f"the body is not {coding}: {why}")


class TooManyFrames(NotUnpacked):
    """A body has more frames or members than are taken."""

    def __init__(self, coding: str, what: str) -> None:
        HeadraceError.__init__(self, f"the body has more than {MOST_FRAMES:,} {what} of {coding}")


class UnpacksToMore(HeadraceError):
    """A body unpacks to more bytes than are taken."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the body is larger than {most} bytes when it is unpacked")


def unpacked(coding: str, body: PackedBody, most: int) -> Iterator[bytes]:
    """Yield what a body unpacks to in pieces, some of which may be empty.

    Raises:
        NotUnpacked: it is not in that coding, or has too many frames of it.
        UnpacksToMore: it is larger than ``most`` bytes.
    """
    size = 0
    for piece in CODINGS[coding](body, coding):
        size += len(piece)
        if size > most:
            raise UnpacksToMore(most)
        yield piece


def _zlib(body: PackedBody, coding: str) -> Iterator[bytes]:
    """Unpack gzip, member after member, or one stream of zlib, with or without its head."""
    is_gzip = coding == "gzip"
    window_bits = 16 + zlib.MAX_WBITS if is_gzip else _bits_of_deflate(body)
    unpacking, members = zlib.decompressobj(window_bits), 1
    try:
        for start in range(0, len(body), _INPUT):
            part: bytes = bytes(body[start : start + _INPUT])
            while part:
                if unpacking.eof:
                    if not is_gzip:
                        raise NotUnpacked(coding, "something follows its end")
                    if members == MOST_FRAMES:
                        raise TooManyFrames(coding, "members")
                    unpacking = zlib.decompressobj(window_bits)
                    members += 1
                yield unpacking.decompress(part, PIECE)
                part = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
        while not unpacking.eof and (rest := unpacking.decompress(b"", PIECE)):
            yield rest
    except zlib.error as cause:
        said = str(cause).partition(": ")[2] or "it is damaged"
        raise NotUnpacked(coding, said) from None
    if not unpacking.eof:
        raise NotUnpacked(coding, _ENDS_EARLY)


def _bits_of_deflate(body: PackedBody) -> int:
    """Return how zlib is told which of the two formats this is.

    Source: RFC 1950, section 2.2: the method is 8, and the first two bytes are a multiple of 31.
    """
    has_head = len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS


def _zstd(body: PackedBody, coding: str) -> Iterator[bytes]:
    import zstandard

    def frame() -> Any:
        return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()

    unpacking, frames = frame(), 1
    try:
        for start in range(0, len(body), ZSTD_INPUT):
            part: bytes = bytes(body[start : start + ZSTD_INPUT])
            while part:
                if unpacking.eof:
                    if frames == MOST_FRAMES:
                        raise TooManyFrames(coding, "frames")
                    unpacking = frame()
                    frames += 1
                yield unpacking.decompress(part)
                part = unpacking.unused_data if unpacking.eof else b""
    except zstandard.ZstdError as cause:
        said = str(cause).rpartition(": ")[2]
        if "too much memory" in said:
            said = f"its window is larger than {ZSTD_WINDOW >> 20} MiB"
        raise NotUnpacked(coding, said) from None
    if not unpacking.eof:
        raise NotUnpacked(coding, _ENDS_EARLY)


CODINGS: Mapping[str, Callable[[PackedBody, str], Iterator[bytes]]] = {
    "gzip": _zlib,
    "zstd": _zstd,
    "deflate": _zlib,
}
"""What unpacks each of them, by their registered names."""
OTHER_NAMES = {"x-gzip": "gzip"}
"""What is the same. Source: RFC 9110, section 8.4.1.3."""
