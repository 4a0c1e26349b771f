"""The format `ndjson`: a payload is a batch, each line of it a message in JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from typing import ClassVar

from headrace.compiler.delivery import Batch
from headrace.compiler.formats.format import FormatMisfit, FormatOptions, Intake, PayloadFormat
from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.largejson import LARGE, SLICE, DecodedBatch, one_in_slices, takes_long
from headrace.compiler.slownumbers import UNSEEN, has_slow_numbers

LINES_AT_ONCE = 256
"""Lines that are looked at one by one before others may have their turn."""


class JsonLines(PayloadFormat, word="ndjson", elsewhere="json_lines jsonl jsonlines"):
    """Any JSON in a line of its own: an array is one message. Blank lines are left out."""

    has_encoding: ClassVar = False

    def __init__(self, options: FormatOptions) -> None:
        pass

    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make a message of each line."""
        size, begin = len(payload), 0
        if size <= SLICE:
            messages = _together(bytes(payload), decoding, is_looked_at=size > UNSEEN)
            if messages is None:
                yield from self._each(payload, 0, size, into, decoding)
            else:
                into.take(messages)
            return
        while begin < size:
            end = size
            if size - begin > SLICE:
                end = payload.rfind(b"\n", begin, begin + SLICE) + 1
            if not end:  # the line is longer than a slice
                end = payload.find(b"\n", begin + SLICE) + 1 or size
                yield from self._long(payload, begin, end, into, decoding)
            else:
                piece = bytes(payload[begin:end])
                messages = _together(piece, decoding, is_looked_at=True)
                if messages is None:
                    yield from self._each(payload, begin, end, into, decoding)
                else:
                    into.take(messages, _containers(piece, into, decoding))
            yield
            begin = end

    def _each(
        self, payload: bytes | bytearray, begin: int, end: int, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make the messages of whole lines, line by line."""
        piece = bytes(payload[begin:end])
        into.add_containers(_containers(piece, into, decoding))
        is_slow = has_slow_numbers(piece)  # each line alone may be too short to be looked at
        decode = decoding.decode_unusual if is_slow else decoding.decode
        some: Batch = []
        for row, line in enumerate(piece.split(b"\n")):
            if row and not row % LINES_AT_ONCE:
                into.take(some)
                some = []
                yield
            if line.strip():
                try:
                    some.append(decode(line))
                except NotJson as cause:
                    into.misfit(_misfit(cause, payload, begin, row, into), line)
        into.take(some)

    def _long(
        self, payload: bytes | bytearray, begin: int, end: int, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make the message of a line that may take long."""
        text = memoryview(payload)[begin : end - payload.endswith(b"\n", begin, end)]
        for at in range(0, len(text), SLICE):
            if not bytes(text[at : at + SLICE]).isspace():
                break
            yield
        else:
            return
        framed = b"".join((b"[", text, b"]"))
        try:
            if len(text) >= LARGE or takes_long(framed, decoding):
                batch = DecodedBatch(asyncio.get_running_loop())
                yield from one_in_slices(framed, decoding, batch)
                into.take_decoded(batch)
            else:
                into.take([decoding.decode(bytes(text))], _containers(framed, into, decoding))
        except NotJson as cause:
            kind, _, _ = str(cause).partition(" (byte ")  # it was decoded between brackets
            into.misfit(_misfit(NotJson(kind), payload, begin, 0, into), bytes(text))


def _containers(piece: bytes, into: Intake, decoding: Decoding) -> int:
    """Return how many objects of the interpreter's are in a piece, or more; 0 where nobody asks."""
    if not into.counts_containers:
        return 0
    found = piece.count(b"[") + piece.count(b"{")
    # A number that remembers how it was written is one as well.
    return found + piece.count(b",") if decoding.keeps_digits else found


def _together(piece: bytes, decoding: Decoding, *, is_looked_at: bool) -> Batch | None:
    """Return the messages of whole lines, all at once; None where something is unusual.

    Values are decoded one behind the other, wherever lines end: that there are as many as lines tells these
    from a text that is indented.
    """
    if is_looked_at and has_slow_numbers(piece):
        return None
    try:
        messages: Batch = decoding.decode_lines(piece)
    except ValueError:
        return None
    lines = _line_counter()(piece) + (not piece.endswith(b"\n"))
    return messages if len(messages) == lines else None


@cache
def _line_counter() -> Callable[[bytes], int]:
    """Return what counts line ends: in Python it takes a tenth of decoding, by the extension nothing."""
    try:
        from rhai import count_line_ends
    except ImportError:
        return lambda text: text.count(b"\n")
    return count_line_ends


def _misfit(
    cause: NotJson, payload: bytes | bytearray, begin: int, row: int, into: Intake
) -> FormatMisfit:
    """Return what is told of a line: without the place of the fault in it, where that is not asked for."""
    kind, _, _ = str(cause).partition(" (byte ")
    number = payload.count(b"\n", 0, begin) + row + 1 if into.numbers_rows else None
    return FormatMisfit(
        f"not JSON: {cause if into.numbers_rows else kind}", f"not JSON: {kind}", number
    )
