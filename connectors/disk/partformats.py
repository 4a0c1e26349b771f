"""How messages stand in parts: JSON in two ways, the text of a template, and rows of CSV."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.largejson import encode_large, encode_large_lines
from headrace.compiler.schema.fields import Choice
from headrace.compiler.texttemplates import TextTemplate, made_texts
from headrace.connectors.disk.csvparts import CsvRowWriter, CsvWriting


@dataclass(frozen=True)
class PartFormat:
    """How messages stand in a part: ``begin``, the batches with ``between`` between them, ``end``."""

    extension: str
    media_type: str
    begin: bytes
    between: bytes
    end: bytes
    rows: Callable[[Batch], bytes]
    """Return the messages of one batch, at least one, as they stand in a part."""
    large_rows: Callable[[Batch, Clock], Awaitable[bytes]]
    """The same for a large batch."""


JSON_FORMATS: Mapping[str, PartFormat] = {
    "ndjson": PartFormat(
        "ndjson", "application/x-ndjson", b"", b"", b"", encode_lines, encode_large_lines
    ),
    "json_array": PartFormat(
        "json",
        "application/json",
        b"[",
        b",",
        b"]",
        lambda batch: encode(batch)[1:-1],
        partial(encode_large, begin=b"", end=b""),
    ),
}
"""Those that need nothing else, by their word in a config."""

FORMATS = Choice(
    *JSON_FORMATS,
    "text",
    "csv",
    elsewhere={
        "ndjson": "json_lines jsonl jsonlines ldjson lines newline_delimited",
        "json_array": "array json",
        "text": "plain raw string txt",
        "csv": "comma_separated delimited tsv",
    },
)
"""All of them."""


def text_format(template: TextTemplate, ctx: Context) -> PartFormat:
    """Return the format of a text for each message, with a line end behind it."""
    made = made_texts(template, f"{ctx.pipeline} {ctx.place}")

    def rows(batch: Batch) -> bytes:
        return b"\n".join((*made(batch), b""))

    return _of_rows("txt", "text/plain; charset=utf-8", b"", rows)


def csv_format(config: CsvWriting, ctx: Context) -> PartFormat:
    """Return the format of a row for each message."""
    table = CsvRowWriter(config, ctx)
    begin = table.header() if config.header else b""
    return _of_rows("csv", "text/csv; charset=utf-8", begin, table)


def _of_rows(
    extension: str, media_type: str, begin: bytes, rows: Callable[[Batch], bytes]
) -> PartFormat:
    large_rows = partial(encode_large_lines, encoded=rows)
    return PartFormat(extension, media_type, begin, b"", b"", rows, large_rows)
