"""The format `lines`: a payload is a batch, each line of it a message."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.compiler.formats.characters import ending_in_lines, pieces
from headrace.compiler.formats.format import FormatOptions, Intake, PayloadFormat
from headrace.compiler.formats.plaintext import VALUE
from headrace.compiler.jsontext import Decoding


class TextLines(PayloadFormat, word="lines", elsewhere="line newline newline_delimited"):
    """Lines end with LF or CR LF; empty ones are left out."""

    def __init__(self, options: FormatOptions) -> None:
        self._encoding, self._is_bare = options.encoding, options.is_bare

    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make a message of each line."""
        for text in ending_in_lines(pieces(payload, self._encoding)):
            if "\r\n" in text:
                text = text.replace("\r\n", "\n")
            # A line may be all of the text: it is not copied once more.
            lines = text.split("\n") if "\n" in text else [text]
            if self._is_bare:
                into.take([line for line in lines if line])
            else:
                into.take([{VALUE: line} for line in lines if line])
            yield

    def fields(self) -> tuple[str, ...]:
        """The text alone."""
        return () if self._is_bare else (VALUE,)
