"""The page about formats says the bounds that hold."""

from __future__ import annotations

from headrace.compiler.contentcodings import MOST_FRAMES
from headrace.compiler.csvtext import MOST_CELL, MOST_COLUMNS
from headrace.compiler.formats import MOST_CELLS, MOST_MESSAGES, MOST_TEXT
from headrace.compiler.formats.characters import ENCODINGS, PIECE
from headrace.compiler.formats.csvoptions import MOST_SKIPPED
from headrace.compiler.formats.csvrows import MOST_ROW
from headrace.web.resources.ingest import LARGEST
from tests.rooms import REPOSITORY

BOUNDS = {
    "messages of a payload, with what is left out of it (not of `json`)": (
        f"{MOST_MESSAGES:,}; `http` answers 413"
    ),
    "cells of a table that are in messages": f"{MOST_CELLS:,}; `http` answers 413",
    "characters of a `text`": f"{MOST_TEXT:,}; `http` answers 413",
    "characters of a line of `lines`": f"{MOST_TEXT:,}; a longer one does not fit",
    "columns of a table": f"{MOST_COLUMNS:,}",
    "characters of a cell": f"{MOST_CELL:,}",
    "characters of a row": (
        f"{MOST_ROW:,}; one that ends in the piece being read, of {PIECE // 1024} KiB,"
        " may have so many more"
    ),
    "bytes of a body of `http`, packed or unpacked": f"{LARGEST // 1024**2} MiB",
    "members of a body in gzip, frames of one in zstd": f"{MOST_FRAMES:,}; `http` answers 400",
    "lines of `skip_rows`": f"{MOST_SKIPPED:,}",
}


def page() -> str:
    return (REPOSITORY / "docs" / "formats.md").read_text()


def test_the_bounds_are_those_of_the_code() -> None:
    _, _, table = page().partition("## Bounds\n\n| what | at most |\n| --- | --- |\n")
    rows = table.partition("\n\n")[0].splitlines()

    assert rows == [f"| {what} | {most} |" for what, most in BOUNDS.items()]


def test_the_encodings_are_those_of_the_code() -> None:
    *most, last = (f"`{each}`" for each in ENCODINGS)

    assert f"{', '.join(most)} or {last}" in page()
