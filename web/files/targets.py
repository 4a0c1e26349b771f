"""Which files a save writes, and which names it takes for them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.compiler.config.connectionsfile import companion
from headrace.compiler.errors import HeadraceError
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import shown
from headrace.web.files.fileidentity import Purposes, taken, written_places
from headrace.web.files.layoutfile import layout_file
from headrace.web.files.reading import Files
from headrace.web.files.standing import holds_something_else

LONGEST = 255
"""Bytes that the name of a file may have."""

_TEMPORARY = re.compile(r"\.headrace-[0-9a-f]*\.tmp", re.IGNORECASE)
"""What files are called while they are being written: a later save may remove them."""


class NotAFileName(HeadraceError):
    """The name of a save is no bare file name, or is taken by a file with another purpose."""

    def __init__(self, name: str, objection: str) -> None:
        super().__init__(f"'name' {shown(name)} cannot be saved under: {objection}")
        self.name = name


@dataclass(frozen=True)
class Targets:
    """The files of one save: the config and what stands beside it.

    ``is_named``: the connections have a file of their own, whatever the config is called.
    """

    config: Path
    connections: Path
    layout: Path
    is_named: bool = False

    @classmethod
    def of(cls, config: Path, files: Files) -> Targets:
        """Return the files of a config of a server that was started with ``files``."""
        beside = files.connections or companion(config, "connections")
        return cls(config, beside, layout_file(config), files.connections is not None)

    def existing(self) -> list[Path]:
        """Return which of those that a save creates are there already."""
        created = [self.config, *([] if self.is_named else [self.connections]), self.layout]
        return [file for file in created if os.path.lexists(file)]

    def purposes(self) -> Iterator[tuple[Path, str]]:
        """Yield each file and what it is for."""
        yield self.config, "config"
        yield self.connections, "connections file"
        yield self.layout, "layout file"


def format_of(file: Path) -> Format:
    """Return the format in which a file of that name is read."""
    return "yaml" if file.suffix.lower() in (".yaml", ".yml") else "json"


def targets_of(name: str, directory: Path, files: Files, used: Iterable[Path] = ()) -> Targets:
    """Return where a save under ``name`` goes, of a server that was started with ``files``.

    ``used`` are files that what runs was built from.

    Raises:
        NotAFileName: with what is wrong with the name.
    """
    bare = name.strip()
    if objection := _objection(bare):
        raise NotAFileName(name, objection)
    targets = Targets.of(directory / bare, files)
    _check_lengths(name, targets)
    if objection := objection_to(targets.purposes(), files, used):
        raise NotAFileName(name, objection)
    return targets


def objection_to(targets: Purposes, files: Files, used: Iterable[Path]) -> str | None:
    """Return why files cannot be written: one would be for two things, of which one would be gone.

    ``used`` are files that what runs was built from.
    """
    sources = ((file, "file that a pipeline was built from") for file in used)
    places = taken([*files.purposes(), *sources])
    for file, purpose in targets:
        for each in written_places(file):
            others = [other for other in places.get(each, ()) if other != purpose]
            if others:
                return f"'{file.name}' is the {others[0]}, and cannot be its {purpose} as well"
            places[each] = [purpose]
    return None


def check_what_stands(name: str, targets: Targets, files: Files) -> None:
    """Raise if what is there would be gone, and is nothing that a save has written.

    The files that the server works against are written whatever is in them: to save is to mend them.

    Raises:
        NotAFileName: with what is there.
    """
    own = set(files.purposes())
    for target in targets.purposes():
        file, purpose = target
        if target not in own and holds_something_else(file, purpose):
            raise NotAFileName(name, f"'{file.name}' exists, and is no {purpose}")


def _objection(bare: str) -> str | None:
    """Return why a name is no bare file name, or None."""
    if not bare:
        return "it is empty"
    if "/" in bare or "\\" in bare:
        return "it has to be the bare name of a file, without '/' and '\\'"
    if not bare.strip("."):
        return "it consists of dots"
    if any(unicodedata.category(each) == "Cc" for each in bare):
        return "it holds a control character"
    if _TEMPORARY.fullmatch(bare):
        return "files are called like that while they are being written"
    return None


def _check_lengths(name: str, targets: Targets) -> None:
    for file, purpose in targets.purposes():
        if file.parent == targets.config.parent and (size := len(os.fsencode(file.name))) > LONGEST:
            which = (
                "it" if file is targets.config else f"the {purpose} '{file.name[-40:]}' beside it"
            )
            raise NotAFileName(name, f"{which} has {size} bytes, and a name has at most {LONGEST}")
