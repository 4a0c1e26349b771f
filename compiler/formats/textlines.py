"""The format `lines`: a payload is a batch, each line of it a message."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.compiler.formats.characters import MOST_TEXT, pieces
from headrace.compiler.formats.format import FormatMisfit, FormatOptions, Intake, PayloadFormat
from headrace.compiler.formats.plaintext import VALUE
from headrace.compiler.jsontext import Decoding

_LONG = f"a line of more than {MOST_TEXT:,} characters"


class TextLines(PayloadFormat, word="lines", elsewhere="line newline newline_delimited"):
    """Lines end with LF or CR LF; empty ones are left out."""

    def __init__(self, options: FormatOptions) -> None:
        self._encoding, self._is_bare = options.encoding, options.is_bare

    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make a message of each line."""
        row = 0
        for lines in _lines(pieces(payload, self._encoding)):
            if lines is None:
                row += 1
                into.misfit(FormatMisfit(_LONG, row=row if into.numbers_rows else None), None)
                continue
            row += len(lines)
            if self._is_bare:
                into.take([line for line in lines if line])
            else:
                into.take([{VALUE: line} for line in lines if line])
            yield

    def fields(self) -> tuple[str, ...]:
        """The text alone."""
        return () if self._is_bare else (VALUE,)


def _lines(texts: Iterator[str]) -> Iterator[list[str] | None]:
    """Yield the lines that end in each text, without their ends; None for one that is too long.

    A line that goes over many texts is put together once.
    """
    begun: list[str] = []
    size = 0
    for text in texts:
        first, feed, rest = text.partition("\n")
        size += len(first)
        if size > MOST_TEXT + 1:  # a CR may be no part of it
            begun = []
        elif first:
            begun.append(first)
        if not feed:
            yield []
            continue
        if begun and begun[-1].endswith("\r"):
            begun[-1] = begun[-1][:-1]
            size -= 1
        if "\r\n" in rest:
            rest = rest.replace("\r\n", "\n")
        lines = rest.split("\n")
        last = lines.pop()
        if size > MOST_TEXT:
            yield None
        else:
            lines.insert(0, "".join(begun))
        yield lines
        begun, size = [last] if last else [], len(last)
    yield None if size > MOST_TEXT else ["".join(begun)]
