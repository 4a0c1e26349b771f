"""The format `text`: a payload is one message, the text that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from headrace.compiler.formats.characters import MOST_TEXT, pieces
from headrace.compiler.formats.format import (
    FormatOptions,
    Intake,
    PayloadFormat,
    TooManyInPayload,
)
from headrace.compiler.jsontext import Decoding

VALUE = "value"
"""The field that has a text."""


class WholeText(PayloadFormat, word="text", elsewhere="bytes plain raw string"):
    """``21.5`` is ``{"value": "21.5"}``."""

    is_one: ClassVar = True

    def __init__(self, options: FormatOptions) -> None:
        self._encoding, self._is_bare = options.encoding, options.is_bare

    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make one message, also of nothing."""
        texts, size = [], 0
        for each in pieces(payload, self._encoding):
            texts.append(each)
            size += len(each)
            if size > MOST_TEXT:
                raise TooManyInPayload(MOST_TEXT, "characters")
            yield
        text = "".join(texts)
        into.take([text if self._is_bare else {VALUE: text}])

    def fields(self) -> tuple[str, ...]:
        """The text alone."""
        return () if self._is_bare else (VALUE,)
