"""Comparing what configs mean: where two of them differ, whatever way each is written.

Values count as they are once defaults are filled in, so writing a default out is no difference. What is
equal in Python and not in JSON (`1`, `1.0`, `true`) differs: messages may carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.decimals import Written
from headrace.compiler.schema.records import Record
from headrace.compiler.text.diagnostics import Path


def differing(before: PipelineConfig, after: PipelineConfig) -> Iterator[Path]:
    """Yield the settings in which two pipelines differ, their ids aside."""
    yield from _within(before.values() | {"id": None}, after.values() | {"id": None}, ())


def is_same(before: Any, after: Any) -> bool:
    """Return whether two values of a config mean the same."""
    return next(differences(before, after), None) is None


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what differs; of lists that differ in length, that of the list."""
    if type(before) is not type(after):
        yield path
    elif isinstance(before, Record):
        yield from _within(before.values(), after.values(), path)
    elif isinstance(before, dict):
        # In order: a constant is handed on as it is written.
        yield from [path] if [*before] != [*after] else _within(before, after, path)
    elif isinstance(before, tuple | list):
        yield from [path] if len(before) != len(after) else _each(before, after, path)
    elif not _is_equal(before, after):
        yield path


def _within(before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for key, value in before.items():
        yield from differences(value, after[key], (*path, key))


def _each(before: Sequence[Any], after: Sequence[Any], path: Path) -> Iterator[Path]:
    for index, value in enumerate(before):
        yield from differences(value, after[index], (*path, index))


def _is_equal(before: Any, after: Any) -> bool:
    if isinstance(before, Written):
        return bool(before.text == after.text)
    if isinstance(before, float):
        return repr(before) == repr(after)  # -0.0 is written as such
    return bool(before == after)
