"""Inputs whose payloads may have another format than JSON: the options of it, once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.compiler.component.families import Input
from headrace.compiler.formats import ENCODINGS, CsvOptions, FormatOptions, PayloadFormat
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.text.diagnostics import Fault, shown

JSON = "json"
UTF_8 = "utf-8"


class PayloadInput(Input):
    """An input that decodes what arrives. See `docs/formats.md`."""

    format: str | None = option(
        Choice(
            JSON,
            *PayloadFormat.known,
            elsewhere={word: each.elsewhere for word, each in PayloadFormat.known.items()},
        ),
        "What a payload is: one message in `json`, which it is if this is absent, one in `text`, or a batch"
        " in `lines`, `ndjson` or `csv`. See [formats](../../formats.md).",
        default=None,
        additive=True,
        elsewhere="codec data_format decoding format_type",
    )
    encoding: str | None = option(
        Choice(
            *ENCODINGS,
            elsewhere={
                "utf-8": "utf8",
                "latin-1": "iso-8859-1 iso8859-1 latin1",
                "windows-1252": "ansi cp1252 windows1252",
                "utf-16": "utf16 unicode",
            },
        ),
        "Encoding of `text`, `lines` and `csv`; UTF-8 if absent.",
        default=None,
        additive=True,
        elsewhere="charset character_encoding",
    )
    csv: CsvOptions | None = option(
        RecordOf(CsvOptions),
        "How the rows of `csv` are read; absent, as its defaults say.",
        default=None,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse options of a format that it has not."""
        yield from super().rules()
        format = PayloadFormat.known.get(self.format or JSON)
        if self.csv is not None and not (format and format.is_table):
            tables = [word for word, each in PayloadFormat.known.items() if each.is_table]
            yield Fault(
                "conflict",
                f"'csv' says how rows are read, and the format is {self.format or JSON}",
                found=shown(self.format or JSON),
                expected=f"format: {' or '.join(tables)}, or no 'csv'",
                path=("csv",),
            )
        if self.encoding not in (None, UTF_8) and not (format and format.has_encoding):
            others = [word for word, each in PayloadFormat.known.items() if each.has_encoding]
            yield Fault(
                "conflict",
                f"{self.format or JSON} is UTF-8",
                found=shown(self.encoding),
                expected=f"{UTF_8}, or one of the formats {', '.join(others)}",
                path=("encoding",),
            )

    def payload_format(self) -> PayloadFormat | None:
        """Return what makes messages of payloads; None: they are JSON."""
        format = PayloadFormat.known.get(self.format or JSON)
        if format is None:
            return None
        is_bare = self.envelope is not None and self.envelope.wraps
        return format(FormatOptions(self.encoding or UTF_8, self.csv, is_bare))

    def hands_on(self) -> Iterable[str] | None:
        """Return the fields that its format has, if that knows."""
        format = self.payload_format()
        return None if format is None else format.fields()

    def is_batching(self) -> bool:
        """Return whether a batch can hold more than one message: a payload may be several."""
        format = PayloadFormat.known.get(self.format or JSON)
        return super().is_batching() or (format is not None and not format.is_one)
