"""Formats: how the payload of an input becomes messages, where it is not JSON.

`format.py` says what one is, and what a payload may have. `plaintext.py`, `textlines.py`, `jsonlines.py`
and `csvtable.py` are the formats; other files that begin with `csv` are parts of the last.
`characters.py` has the encodings.
"""

# Whoever names formats needs all of them; in this order they are listed.
# ruff: isort: off
from headrace.compiler.formats.format import (
    MOST_CELLS,
    MOST_MESSAGES,
    PayloadFormat,
    FormatOptions,
    CountingIntake,
    Intake,
    LeaveOut,
    FormatMisfit,
    TooManyInPayload,
    decoded,
    joined,
)
from headrace.compiler.formats.characters import ENCODINGS, MOST_TEXT
from headrace.compiler.formats.plaintext import WholeText
from headrace.compiler.formats.textlines import TextLines
from headrace.compiler.formats.jsonlines import JsonLines
from headrace.compiler.formats.csvtable import CsvTable
from headrace.compiler.formats.csvoptions import CsvOptions

__all__ = [
    "ENCODINGS",
    "MOST_CELLS",
    "MOST_MESSAGES",
    "MOST_TEXT",
    "CountingIntake",
    "CsvOptions",
    "CsvTable",
    "FormatMisfit",
    "FormatOptions",
    "Intake",
    "JsonLines",
    "LeaveOut",
    "PayloadFormat",
    "TextLines",
    "TooManyInPayload",
    "WholeText",
    "decoded",
    "joined",
]
