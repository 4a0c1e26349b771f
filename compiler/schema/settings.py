"""The single settings of a record, wherever in it they are: what rules look through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.compiler.schema.fields import PipelineId, Strict
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Path

Setting = tuple[Path, Strict, Any]
"""Where it stands in the record, the field it was read by, and what it holds."""


def settings(record: type[Record], values: Mapping[str, Any], path: Path = ()) -> Iterator[Setting]:
    """Yield every single setting of a record, also inside what it holds.

    ``values`` by wire name; what is absent is left out.
    """
    for wire, known in record.options().items():
        if values.get(wire) is not None:
            yield from _inside(known.field, values[wire], (*path, wire))


def settings_of(record: Record) -> Iterator[Setting]:
    """Yield the settings of a record that has been read."""
    return settings(type(record), record.values())


def upstreams(found: Iterable[Setting]) -> Iterator[tuple[Path, str]]:
    """Yield the pipelines that settings name, each with its path."""
    for path, field, value in found:
        if isinstance(field, PipelineId):
            yield path, value


def _inside(field: Any, value: Any, path: Path) -> Iterator[Setting]:
    if isinstance(value, Record):
        yield from settings(type(value), value.values(), path)
    elif isinstance(field, ListOf) and isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _inside(field.inner, item, (*path, index))
    else:
        yield path, field, value
