"""Bytes as the characters of a document, or why they are none that a config is written in."""

from __future__ import annotations

import re
from typing import Literal

from headrace.compiler.text.composing import MalformedDocument
from headrace.compiler.text.diagnostics import Codes, Fault

CODES: Codes = {
    "empty-document": "The document contains nothing.",
    "not-text": "The document is not UTF-8 text.",
}

Format = Literal["json", "yaml"]

LARGEST = 16 * 1024 * 1024
"""How many bytes a document may have."""

_NO_CHARACTERS = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff"
_REFUSED = {
    "json": re.compile(f"[{_NO_CHARACTERS}]"),
    # YAML 1.2 takes the rest only as escapes, and libyaml would end a line at the last three.
    "yaml": re.compile(f"[{_NO_CHARACTERS}\x7f-\x84\x86-\x9f\ufffe\uffff\ufeff\x85\u2028\u2029]"),
}
_BYTE_ORDER_MARK = "\ufeff"
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|\x00[^\x00]|[^\x00]\x00")


def decoded(text: bytes | str) -> str:
    """Return the text without a byte order mark at its start, which editors put there unasked.

    Bytes that are not UTF-8 stand in it as surrogates, for `check` to refuse: so even of those the
    line and the column can be told.
    """
    decoded = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    return decoded.removeprefix(_BYTE_ORDER_MARK)


def check(text: str, format: Format, whole: bytes | str = "") -> None:
    """Refuse what no document is written in; ``whole`` is what the text was decoded from.

    Raises: `MalformedDocument` at the first such character.
    """
    if refused := _REFUSED[format].search(text):
        start = whole[:1].encode("utf-8", "surrogatepass") if isinstance(whole, str) else whole
        mark = _BYTE_ORDER_MARK.encode()
        skipped = len(mark) if start.startswith(mark) else 0
        raise MalformedDocument(_fault(text, refused.start(), skipped), refused.start())
    if not text.strip(" \t\r\n"):
        raise MalformedDocument(Fault("empty-document", "the document is empty"), 0)


def check_size(text: bytes | str) -> None:
    """Refuse a text that is too large, or wide, before anything is done to it.

    Raises: `MalformedDocument` at its start.
    """
    if len(text) > LARGEST:
        fault = Fault("too-large", f"a document has at most {LARGEST // 2**20} MiB")
        raise MalformedDocument(fault, 0)
    if isinstance(text, bytes) and _WIDE.match(text):
        raise MalformedDocument(_UTF_16, 0)


def _fault(text: str, at: int, skipped: int) -> Fault:
    code = ord(text[at])
    if 0xDC80 <= code <= 0xDCFF:
        before = skipped + len(text[:at].encode())
        message = f"byte {before + 1:,} (0x{code - 0xDC00:02x}) is not UTF-8 text"
        return Fault("not-text", message, expected="UTF-8")
    if code == 0:
        return Fault("not-text", "a NUL character: this is not a text file", expected="UTF-8")
    if 0xD800 <= code <= 0xDFFF:
        return Fault("lone-surrogate", f"\\u{code:04x} is half of a character")
    message = f"the control character U+{code:04X} has to be written as an escape in quotes"
    return Fault("control-character", message, expected=f"\\u{code:04x}")


_UTF_16 = Fault("not-text", "this is UTF-16: save it as UTF-8", found="UTF-16", expected="UTF-8")
