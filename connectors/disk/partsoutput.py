"""What outputs have in common that write parts: what they write them in, and what that needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Fits
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.texttemplates import TemplateText, TextTemplate
from headrace.connectors.disk.csvparts import CsvWriting
from headrace.connectors.disk.partformats import JSON_FORMATS, PartFormat, csv_format, text_format

NEEDED = {"text": "template", "csv": "csv"}
"""What a format cannot be without, and nothing else takes: the option, by the word of the format."""


class PartsOutput(QueuedOutput):
    """An output that writes batches into parts. Its option `format` is one of `FORMATS`."""

    if TYPE_CHECKING:  # at run time it is an option of each of them, in its place among the others
        format: str

    template: TextTemplate | None = option(
        TemplateText(),
        "The text of a message, with `format: text`: fields stand in it in braces, as in `{at} {value}`. A"
        " batch with a message that lacks one of them is lost whole.",
        default=None,
        additive=True,
        elsewhere="line pattern text",
    )
    csv: CsvWriting | None = option(
        RecordOf(CsvWriting),
        "What is written with `format: csv`.",
        default=None,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a format without what it needs, and what another one needs."""
        yield from super().rules()
        for word, name in NEEDED.items():
            given = getattr(self, name) is not None
            if given and self.format != word:
                yield Fault(
                    "conflict",
                    f"'{name}' says nothing to 'format: {self.format}'",
                    expected=f"'format: {word}' beside it",
                    path=(name,),
                    on_key=True,
                )
            elif self.format == word and not given:
                yield Fault(
                    "conflict",
                    f"'format: {word}' needs '{name}'",
                    expected=f"'{name}' beside it",
                    path=("format",),
                )

    def field_use(self) -> FieldUse:
        """With a template or columns nothing else is read."""
        if self.template is not None:
            return FieldUse.of(reads=self.template.paths)
        return super().field_use() if self.csv is None else FieldUse.of(reads=self.csv.columns)

    def fits(self, ctx: Context) -> Fits | None:
        """With a template or columns it makes what is written."""
        return None if self.format in JSON_FORMATS else self.form(ctx).rows

    def form(self, ctx: Context) -> PartFormat:
        """Return how a batch is written."""
        if self.template is not None:
            return text_format(self.template, ctx)
        return JSON_FORMATS[self.format] if self.csv is None else csv_format(self.csv, ctx)
