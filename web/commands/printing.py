"""What commands print on standard output, in whichever encoding that is.

The stream stays as whoever started us has opened it: what is printed is made such that it can be written.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from typing import Any, TextIO

_NOT_PRINTED_BY_ALL = re.compile("[^\n -~]")


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print_json_text(json.dumps(value, indent=2, ensure_ascii=False))


def print_json_text(text: str) -> None:
    """Print what is JSON already.

    Where standard output is not UTF-8, which JSON has to be, it is ASCII. What cannot be written, such as
    the bytes of the name of a file that are no text, and what a terminal would obey, has the escapes of
    JSON, and not those of Python.
    """
    is_utf_8 = _is_utf_8(sys.stdout)

    def written(found: re.Match[str]) -> str:
        return found[0] if is_utf_8 and found[0].isprintable() else json.dumps(found[0])[1:-1]

    print(_NOT_PRINTED_BY_ALL.sub(written, text), flush=True)


def print_text(*lines: str, out: TextIO | None = None) -> None:
    """Print lines, on standard output unless ``out`` is another stream.

    What it has no letter for is escaped.
    """
    stream = out or sys.stdout
    encoding = stream.encoding or "utf-8"
    text = "\n".join(lines)
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _is_utf_8(stream: TextIO) -> bool:
    return codecs.lookup(stream.encoding or "utf-8").name == "utf-8"
