"""Which files a save writes, which names it takes for them, and what it may replace."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.compiler.errors import HeadraceError
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import shown
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.files.reading import Files, Purposes, read_places, written_places

LONGEST = 255
"""Bytes that the name of a file may have."""

_TEMPORARY = re.compile(r"\.headrace-[0-9a-f]*\.tmp", re.IGNORECASE)
"""What files are called while they are being written: a later save may remove them."""
_FORMATS: dict[str, tuple[Format | None, ...]] = {
    "config": ("json", "yaml"),  # a save writes either, whatever the name is
    "connections file": (None,),
    "layout file": ("json",),
}


class NotAFileName(HeadraceError):
    """The name of a save is no bare file name, or is taken by a file with another purpose."""

    def __init__(self, name: str, objection: str) -> None:
        super().__init__(f"'name' {shown(name)} cannot be saved under: {objection}")
        self.name = name


def format_of(file: Path) -> Format:
    """Return the format in which a file of that name is read."""
    return "yaml" if file.suffix.lower() in (".yaml", ".yml") else "json"


def targets_of(name: str, directory: Path, files: Files, used: Iterable[Path] = ()) -> Files:
    """Return what a save under ``name`` writes, of a server that was started with ``files``.

    ``used`` are files that what runs was built from.

    Raises:
        NotAFileName: with what is wrong with the name.
    """
    bare = name.strip()
    targets = Files(directory / bare, files.connections)
    if objection := (
        _no_bare_name(bare) or _too_long(targets) or objection_to(targets.purposes(), files, used)
    ):
        raise NotAFileName(name, objection)
    return targets


def existing(targets: Files) -> list[Path]:
    """Return which files that a save creates are there already: connections that are named are not."""
    return [
        file
        for file, _ in targets.purposes()
        if file != targets.connections and os.path.lexists(file)
    ]


def objection_to(targets: Purposes, files: Files, used: Iterable[Path]) -> str | None:
    """Return why files cannot be written: one would be for two things, of which one would be gone.

    ``used`` are files that what runs was built from.
    """
    sources = ((file, "file that a pipeline was built from") for file in used)
    taken = [
        (place, purpose)
        for file, purpose in (*files.purposes(), *sources)
        for place in read_places(file)
    ]
    for file, purpose in targets:
        for place in written_places(file):
            others = [other for at, other in taken if at == place and other != purpose]
            if others:
                return f"'{file.name}' is the {others[0]}, and cannot be its {purpose} as well"
            taken.append((place, purpose))
    return None


def check_what_stands(name: str, targets: Files, files: Files) -> None:
    """Raise if what is there would be gone, and is nothing that a save has written.

    The files that the server works against are written whatever is in them: to save is to mend them.

    Raises:
        NotAFileName: with what is there.
    """
    own = set(files.purposes())
    for file, purpose in targets.purposes():
        if (file, purpose) not in own and holds_something_else(file, purpose):
            raise NotAFileName(name, f"'{file.name}' exists, and is no {purpose}")


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
    return not any(_is_one(purpose, value) for value in _values(file, _FORMATS[purpose]))


def _values(file: Path, formats: Iterable[Format | None]) -> Iterator[Any]:
    """Yield what a file says in each format in which it says something."""
    for format in formats:
        try:
            yield read_file(file, format).value
        except Unreadable as cause:
            if cause.document is not None:
                yield cause.document.value
            elif [each.code for each in cause.diagnostics] == ["empty-document"]:
                yield None


def _is_one(purpose: str, value: Any) -> bool:
    """Return whether what a file says is what one for that purpose does; an empty one says nothing."""
    match purpose, value:
        case _, None:
            return True
        case "config", [*pipelines] | {"pipelines": [*pipelines]}:
            return all(isinstance(each, dict) and "inputs" in each for each in pipelines)
        case "connections file", dict():
            return all(isinstance(each, dict) and "type" in each for each in value.values())
        case "layout file", dict():
            return value.keys() <= LayoutFile.options().keys()
    return False


def _no_bare_name(bare: str) -> str | None:
    """Return why a name is no bare file name, or None."""
    objections = {
        "it is empty": not bare,
        "it has to be the bare name of a file, without '/' and '\\'": "/" in bare or "\\" in bare,
        "it consists of dots": not bare.strip("."),
        "it holds a control character": any(unicodedata.category(each) == "Cc" for each in bare),
        "files are called like that while they are being written": _TEMPORARY.fullmatch(bare),
    }
    return next((objection for objection, holds in objections.items() if holds), None)


def _too_long(targets: Files) -> str | None:
    """Return which name of those beside the config, or of it, is longer than one may be."""
    assert targets.config is not None
    for file, purpose in targets.purposes():
        size = len(os.fsencode(file.name))
        if file.parent == targets.config.parent and size > LONGEST:
            is_config = file is targets.config
            which = "it" if is_config else f"the {purpose} '{file.name[-40:]}' beside it"
            return f"{which} has {size} bytes, and a name has at most {LONGEST}"
    return None
