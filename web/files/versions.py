"""What each file of a save is to hold, one version after the other.

A config names connections that stand in another file, and two files cannot be replaced at once. So
that whatever a crash leaves behind can be started from, the connections are first written with those
that the old config may name, then the config, then the connections without what nobody names any
more. Where a name has come to mean another kind, the new one goes by an alias until the old config is
gone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Connection
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.dumping import NO_ALIASES, Snapshot, dumped_connections
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.compiler.text.writing import Unwritable, write
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.files.replacing import FileChange, NotWritten
from headrace.web.files.targets import Targets, format_of


@dataclass(frozen=True)
class Versions:
    """One save: what is written, where, and whether the files have to be new."""

    snapshot: Snapshot
    layout: LayoutFile
    targets: Targets
    format: Format
    is_new: bool

    def changes(self, catalogue: Catalogue) -> Iterator[FileChange]:
        """Yield the changes, in an order in which every step leaves files that can be started from.

        Raises:
            NotWritten: a file would be like none that can be read.
        """
        old, new = _filed(self.targets, catalogue), self.snapshot.connections
        clashing = {name for name in old.keys() & new.keys() if old[name].kind != new[name].kind}
        aliases = _aliases(sorted(clashing), {*old, *new})
        renamed = {alias: new[name] for name, alias in aliases.items()}
        first = {**old, **{name: new[name] for name in new.keys() - clashing}, **renamed}
        if first or os.path.lexists(self.targets.connections):
            yield self._connections(first, is_new=self.is_new and not self.targets.is_named)
        if aliases:
            yield self._config(aliases)
            yield self._connections({**new, **renamed})
        yield self._change(self.targets.layout, self.layout.dump(), "json", is_new=self.is_new)
        yield self._config(is_new=self.is_new)
        if first.keys() != new.keys():
            yield self._connections(new)

    def _config(
        self, aliases: Mapping[str, str] = NO_ALIASES, *, is_new: bool = False
    ) -> FileChange:
        config = self.snapshot.config(aliases)
        return self._change(self.targets.config, config, self.format, is_new=is_new)

    def _connections(self, filed: Mapping[str, Connection], *, is_new: bool = False) -> FileChange:
        """Return a file that may hold credentials that are written out."""
        file = self.targets.connections
        text = written(file, dumped_connections(filed), format_of(file))
        return FileChange(file, text, is_new, is_private=True)

    def _change(self, file: Path, document: Any, format: Format, *, is_new: bool) -> FileChange:
        return FileChange(file, written(file, document, format), is_new)


def written(file: Path, document: Any, format: Format) -> str:
    """Return the text of a file.

    Raises:
        NotWritten: it could not be read again.
    """
    try:
        return write(document, format)
    except Unwritable as cause:
        raise NotWritten(f"'{file.name}' could not be read again: {cause}") from cause


def _filed(targets: Targets, catalogue: Catalogue) -> Mapping[str, Connection]:
    """Return the connections that are on file; none if a start would refuse them anyway."""
    try:
        connections, _ = load_connections(read_file(targets.connections), catalogue)
    except Unreadable:
        return {}
    return connections or {}


def _aliases(clashing: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Return another name for each, that nothing has."""
    free = (name for number in count(1) if (name := f"saving-{number}") not in taken)
    return dict(zip(clashing, free, strict=False))
