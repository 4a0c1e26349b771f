"""The layout: where somebody has put pipelines on a page, and how the edges between them run.

It belongs to no pipeline: ids that do not run are kept, and it never counts as a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.compiler.component.drafts import loaded
from headrace.compiler.schema.fields import Choice, Identifier, Integer, Number
from headrace.compiler.schema.records import Record, dumped, option
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf
from headrace.compiler.text.diagnostics import Diagnostic, in_file_order
from headrace.compiler.text.documents import Document, Site


class PipelineLayout(Record):
    """Where a pipeline stands, and how large it is drawn."""

    x: float = option(Number(), "From the left.")
    y: float = option(Number(), "From the top.")
    width: float | None = option(
        Number(), "How wide; left out, as wide as its content.", default=None
    )
    height: float | None = option(
        Number(), "How high; left out, as high as its content.", default=None
    )


class PortLayout(Record):
    """Where an edge meets a pipeline."""

    side: str = option(Choice("top", "right", "bottom", "left"), "The side of the pipeline.")
    along: float = option(Number(), "The place on that side, from 0 to 1.")


class EdgeLayout(Record):
    """How the edge between two pipelines runs."""

    from_: str = option(Identifier(), "The pipeline that is read.")
    to: str = option(Identifier(), "The pipeline that reads.")
    offset: float | None = option(
        Number(),
        "How far its channel is off the middle; left out: nobody has moved it, 0: it was centred.",
        default=None,
    )
    from_port: PortLayout | None = option(
        RecordOf(PortLayout), "Where it leaves; left out: wherever it is best.", default=None
    )
    to_port: PortLayout | None = option(
        RecordOf(PortLayout), "Where it arrives; left out: wherever it is best.", default=None
    )


class LayoutFile(Record):
    """A whole arrangement; an empty one leaves everything to automatic layout."""

    version: int = option(Integer(min=None), "Of the format.", default=1)
    pipelines: Mapping[str, PipelineLayout] | None = option(
        ObjectOf(RecordOf(PipelineLayout), noun="pipeline layout"),
        "The pipelines that somebody has moved, by id.",
        default=None,
    )
    edges: tuple[EdgeLayout, ...] = option(
        ListOf(RecordOf(EdgeLayout), noun="edge layout"),
        "The edges that somebody has moved.",
        default=(),
    )

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the arrangement, complete but for edges if there are none."""
        return {
            "version": self.version,
            "pipelines": dumped(self.pipelines or {}, masked=masked),
            **({"edges": dumped(self.edges, masked=masked)} if self.edges else {}),
        }


def layout_file(config: Path) -> Path:
    """Return the layout file of a config; it is always JSON."""
    return config.with_name(f"{config.stem}.layout.json")


def load_layout(document: Document) -> tuple[LayoutFile | None, list[Diagnostic]]:
    """Read an arrangement, and tell all that is wrong with it."""
    layout, _, faults = loaded(LayoutFile, document.value)
    return layout, in_file_order(map(Site(document).diagnose, faults))
