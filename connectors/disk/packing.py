"""Parts compressed: one in memory, or a file on the disk."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from headrace.compiler.errors import FailureClass, HeadraceError
from headrace.compiler.schema.fields import Choice
from headrace.connectors.disk.paths import NEW_FILE
from headrace.connectors.disk.systemfailures import failure_of

PIECE = 1024 * 1024
"""Bytes of a file that are compressed without a look whether to go on."""
UNFINISHED = ".tmp"


@dataclass(frozen=True)
class Packing:
    """How a part that is closed is compressed, and what tells so to whoever finds it."""

    extension: str
    media_type: str
    pack: Callable[[bytes], bytes]
    """Compress; for a thread."""
    unpack: Callable[[bytes], bytes]
    """The way back; for a thread. Raises whatever it does of what was not compressed so."""
    writer: Callable[[BinaryIO], AbstractContextManager[Any]]
    """Return what compresses into a file whatever it is to ``write``."""


def _zstandard(body: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(body)


def _unzstandard(body: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompress(body)


def _zstandard_writer(file: BinaryIO) -> AbstractContextManager[Any]:
    import zstandard

    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


def _gzip_writer(file: BinaryIO) -> AbstractContextManager[Any]:
    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)


PACKINGS = {
    "gzip": Packing(
        "gz",
        "application/gzip",
        partial(gzip.compress, compresslevel=6, mtime=0),
        gzip.decompress,
        _gzip_writer,
    ),
    "zstd": Packing("zst", "application/zstd", _zstandard, _unzstandard, _zstandard_writer),
}
"""The ways to compress by their word in a config."""

COMPRESSIONS = Choice(
    "none",
    *PACKINGS,
    elsewhere={"none": "false no off", "gzip": "gz true", "zstd": "zst zstandard"},
)


class Uncompressed(HeadraceError):
    """A file stays as it is."""

    def __init__(self, why: str, failure: FailureClass) -> None:
        super().__init__(f"it stays uncompressed: {why}")
        self.failure = failure


def packed_name(name: str, packing: Packing) -> str:
    """Return what a file is called when it is compressed."""
    return f"{name}.{packing.extension}"


def compress_file(
    folder: int, name: str, file: int, packing: Packing, goes_on: Callable[[], bool]
) -> None:
    """Put a compressed file in the place of one in a folder; for a thread.

    It is there whole or not at all, and the other one is removed only once it is on the disk.

    Raises:
        Uncompressed: it cannot be written, or need not be any more. The file is as it was.
    """
    made = packed_name(name, packing)
    try:
        copy = os.open(made + UNFINISHED, NEW_FILE, 0o666, dir_fd=folder)
        try:
            with open(copy, "wb") as out:
                _compress(file, out, packing, goes_on)
                out.flush()
                os.fsync(copy)
            if exists(made, folder):  # nobody of ours makes one beside a file that is there
                raise Uncompressed(f"there is another '{made}'", "misconfigured")
            os.rename(made + UNFINISHED, made, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(made + UNFINISHED, dir_fd=folder)
            raise
        os.fsync(folder)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
    except OSError as cause:
        raise Uncompressed(os.strerror(cause.errno or 0).lower(), failure_of(cause)) from cause


def exists(name: str, folder: int) -> bool:
    """Return whether a name is taken in a folder, be it by a link."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _compress(file: int, out: BinaryIO, packing: Packing, goes_on: Callable[[], bool]) -> None:
    offset = 0
    with packing.writer(out) as writer:
        while piece := os.pread(file, PIECE, offset):
            if not goes_on():
                raise Uncompressed("the pipeline had to end", "unavailable")
            writer.write(piece)
            offset += len(piece)
