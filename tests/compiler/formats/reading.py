"""What a format makes of a payload, with what it leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.compiler.formats import (
    CsvOptions,
    FormatMisfit,
    FormatOptions,
    PayloadFormat,
    decoded,
)
from headrace.compiler.jsontext import Decoding
from headrace.compiler.slownumbers import UNSEEN


def made(
    word: str,
    payload: bytes,
    *,
    encoding: str = "utf-8",
    is_bare: bool = False,
    keeps_digits: bool = False,
    **csv: Any,
) -> Any:
    """Return the messages of a payload; the refusal's text where it is refused."""
    format, decoding = _format(word, encoding, is_bare, csv), _decoding(keeps_digits)

    def read() -> Any:
        try:
            return decoded(format, payload, decoding)
        except FormatMisfit as cause:
            return str(cause)

    return _on_a_loop(read, payload)


def kept(word: str, payload: bytes, **csv: Any) -> tuple[Any, list[str]]:
    """Return the messages of what fits, and the kinds of what is left out."""
    left_out: list[FormatMisfit] = []
    format = _format(word, "utf-8", False, csv)
    batch = _on_a_loop(
        lambda: decoded(format, payload, Decoding(), lambda cause, _: left_out.append(cause)),
        payload,
    )
    return [*batch], [each.kind for each in left_out]


def _on_a_loop(read: Callable[[], Any], payload: bytes) -> Any:
    """Read on a loop what is let go of in slices there."""

    async def reading() -> Any:
        return read()

    return read() if len(payload) <= UNSEEN else asyncio.run(reading())


def _format(word: str, encoding: str, is_bare: bool, csv: dict[str, Any]) -> PayloadFormat:
    return PayloadFormat.known[word](FormatOptions(encoding, CsvOptions.load(csv), is_bare))


def _decoding(keeps_digits: bool) -> Decoding:
    decoding = Decoding()
    decoding.keep_digits(keeps=keeps_digits)
    return decoding
