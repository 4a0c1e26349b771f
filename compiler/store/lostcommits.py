"""Commits that SQLite drops from a damaged write-ahead log without a word.

The log is a header and frames, each with the two salts of the header. SQLite takes frames up to the first
whose checksum is wrong. What was committed behind that one is still there, and carries the same salts,
while what is left of an older log carries others. Source:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct, unpack

from headrace.compiler.store.database import PAGE_BYTES

LAST_NOT_WHOLE = "its last commit is not whole: torn as the process ended, or damaged"
"""Said where one commit is dropped, and none behind it. A log that goes round has older frames there: where
a kill lets the head of one be written and not its page, it looks like one that was whole."""

_HEADER = Struct(">I4xI4x8s8s")
"""Magic, size of a page, salts, checksum."""
_FRAME = Struct(">4xI8s8x")
"""Pages of the database after a commit, 0 within one; salts."""


def commits_in(log: Path) -> list[int]:
    """Return the numbers of the frames that end a commit of a log as it lies on the disk, from 0.

    Not to be called while this process has the database open: to close a file gives up the locks on it.
    """
    try:
        with log.open("rb") as file:
            size = log.stat().st_size
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return []
            _, page, salts, _ = _HEADER.unpack(header)
            wanted = salts
            if not _is_whole(header):  # then all frames are dropped, also the first
                page, wanted = PAGE_BYTES, b""
            found = []
            # A frame that is cut short was never told to be stored, or is where the log was torn.
            for number in range((size - _HEADER.size) // (_FRAME.size + page)):
                pages, own = _FRAME.unpack(file.read(_FRAME.size))
                wanted = wanted or own
                if pages and _is_of(own, wanted):
                    found.append(number)
                file.seek(page, 1)
            return found
    except FileNotFoundError:
        return []


def said_of(lost: int) -> str:
    """Return what is said of a log of which so many commits are dropped."""
    return LAST_NOT_WHOLE if lost == 1 else f"it is damaged: {lost:,} of its commits are lost"


def _is_of(salts: bytes, wanted: bytes) -> bool:
    """Return whether salts are those that are wanted, also when one of the two is damaged."""
    return salts[:4] == wanted[:4] or salts[4:] == wanted[4:]


def _is_whole(header: bytes) -> bool:
    """Return whether the checksum of a header is right: sums of its first 24 bytes as six numbers."""
    magic, _, _, checksum = _HEADER.unpack(header)
    order = ">" if magic & 1 else "<"
    one = two = 0
    numbers = unpack(f"{order}6I", header[:24])
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    found: bytes = checksum
    return found == one.to_bytes(4, "big") + two.to_bytes(4, "big")
