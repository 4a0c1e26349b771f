"""What stands where a save would put its files: of the same sort, or something else that would be gone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace.compiler.text.decoding import Format
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.web.files.layoutfile import LayoutFile


def holds_something_else(file: Path, purpose: str) -> bool:
    """Return whether a file is there that cannot be what is put in its place.

    An empty one can, and so can a link that leads nowhere. What a directory or a pipe is in the way of
    fails when it is written; a link to one would be replaced, so it is something else.
    """
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(found.st_mode):
        return os.path.islink(file)
    is_one, formats = _SORTS[purpose]
    return not any(is_one(value) for value in _values(file, formats))


def _values(file: Path, formats: tuple[Format | None, ...]) -> Iterator[Any]:
    """Yield what a file says in each format in which it says something."""
    for format in formats:
        try:
            yield read_file(file, format).value
        except Unreadable as cause:
            if cause.document is not None:
                yield cause.document.value
            elif [each.code for each in cause.diagnostics] == ["empty-document"]:
                yield None


def _is_config(value: Any) -> bool:
    """Return whether it is a list of pipelines, or an object that has one."""
    pipelines = value.get("pipelines") if isinstance(value, dict) else value
    return value is None or (
        isinstance(pipelines, list)
        and all(isinstance(each, dict) and "inputs" in each for each in pipelines)
    )


def _are_connections(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(isinstance(each, dict) and "type" in each for each in value.values())
    )


def _is_layout(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and value.keys() <= LayoutFile.options().keys()
    )


_SORTS: dict[str, tuple[Callable[[Any], bool], tuple[Format | None, ...]]] = {
    "config": (_is_config, ("json", "yaml")),  # a save writes either, whatever the name is
    "connections file": (_are_connections, (None,)),
    "layout file": (_is_layout, ("json",)),
}
