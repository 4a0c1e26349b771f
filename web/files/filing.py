"""The files that a server works against: what it was started from, and what a save makes of them.

A config names connections that stand in another file, and two files cannot be replaced at once. So
that whatever a crash leaves behind can be started from, the connections are first written with those
that the old config may name, then the config, then the connections without what nobody names any
more. Where a name has come to mean another kind, the new one goes by an alias until the old config is
gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as with_changes
from itertools import count
from pathlib import Path
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Connection
from headrace.compiler.config.connectionsfile import companion, load_connections
from headrace.compiler.config.dumping import NO_ALIASES, Snapshot, dumped_connections
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.switching import SWITCHING
from headrace.compiler.schema.records import listed
from headrace.compiler.text.counting import counted
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.compiler.text.render import render
from headrace.compiler.text.writing import Unwritable, write
from headrace.web.engineprotocol import Engine
from headrace.web.files.layoutfile import LayoutFile, layout_file
from headrace.web.files.reading import Files, Loaded, read_layout
from headrace.web.files.replacing import FileChange, NotWritten, TakenMeanwhile, replace
from headrace.web.files.targets import (
    check_what_stands,
    existing,
    format_of,
    objection_to,
    targets_of,
)

log = logging.getLogger("headrace.web")


class FilesExist(HeadraceError):
    """A save that must not replace anything finds files in its place; nothing was written."""

    def __init__(self, files: Sequence[Path]) -> None:
        there = f"{listed([file.name for file in files])} exist{'s' if len(files) == 1 else ''}"
        super().__init__(f"nothing was saved: {there}, and 'overwrite' is false")
        self.files = files


class LayoutTaken(HeadraceError):
    """The file that the layout belongs into is used for something else; the layout is as it was."""

    def __init__(self, objection: str) -> None:
        super().__init__(f"the layout is as it was: {objection}")


class SavedFiles:
    """What is on file of a server, and what of it has changed since."""

    def __init__(self, engine: Engine, files: Files) -> None:
        """Take it that nothing runs; a save lands beside the config of ``files``."""
        self.files = files.absolute()
        self.layout = LayoutFile()
        self.lock = asyncio.Lock()
        """Held by whoever reads or writes the files: one save, revert or arrangement at a time."""
        self.directory = self.files.base() or Path.cwd()
        """Where a save lands."""
        self._engine = engine
        self._filed = self._compared = Snapshot()
        self._has_changed = False

    def has_changed(self) -> bool:
        """Return whether a save would write another graph than was loaded or saved last."""
        now = self._snapshot()
        if not now.is_made_of(self._compared):
            self._compared, self._has_changed = now, now.differs_from(self._filed)
        return self._has_changed

    def loaded(self, layout: LayoutFile) -> None:
        """Take what runs now for what is filed."""
        self.layout = layout
        self._settle(self._snapshot())

    async def reverted(self) -> None:
        """Take what runs now for what is filed, and read the layout again. To be called locked.

        A layout that cannot be read stays as it is: pipelines are no worse for that.
        """
        now, read = self._snapshot(), Loaded(self.files)
        await asyncio.to_thread(read_layout, read)
        for diagnostic in read.diagnostics:
            log.warning("the layout is as it was: %s", render([diagnostic], style="plain"))
        if not read.diagnostics:
            self.layout = read.layout
        self._settle(now)

    async def save(
        self, name: str, catalogue: Catalogue, *, format: Format | None, overwrites: bool
    ) -> Path:
        """Write what runs, and return the config that was written.

        Without a config so far, it is the config from now on.

        Raises:
            NotAFileName: nothing can be saved under the name.
            FilesExist: it must not overwrite, and would.
            NotWritten: the files are as they were.
        """
        async with self.lock:
            used = list(await self._engine.files())
            targets = await asyncio.to_thread(targets_of, name, self.directory, self.files, used)
            snapshot = self._snapshot()
            save = Save(snapshot, self.layout, targets, format, is_new=not overwrites)
            # In a thread, because disks take their time, and so do a thousand pipelines.
            with SWITCHING.often():
                await asyncio.to_thread(_write, name, save, self.files, catalogue)
            self._settle(snapshot)
            if self.files.config is None:
                self.files = with_changes(self.files, config=save.config)
                self._engine.move(self.directory)
        return save.config

    async def arrange(self, layout: LayoutFile, check: Callable[[LayoutFile], None]) -> None:
        """Take a layout; with a config, write it beside that. ``check`` may refuse to replace the other.

        Raises:
            LayoutTaken: its file is used for something else.
            NotWritten: the layout is as it was.
        """
        async with self.lock:
            check(self.layout)
            if (config := self.files.config) is not None:
                used = list(await self._engine.files())
                await asyncio.to_thread(_write_layout, config, self.files, used, layout)
            self.layout = layout

    def _settle(self, snapshot: Snapshot) -> None:
        self._filed = self._compared = snapshot
        self._has_changed = False

    def _snapshot(self) -> Snapshot:
        """Return what runs now. What may still be refused does not run."""
        engine = self._engine
        return Snapshot(engine.configs(), dict(engine.connections), dict(engine.declarations))


@dataclass(frozen=True)
class Save:
    """One save: what is written, where, in which format, and whether the files have to be new."""

    snapshot: Snapshot
    layout: LayoutFile
    targets: Files
    format: Format | None = None
    """That of the config; None: as its name says."""
    is_new: bool = False

    @property
    def config(self) -> Path:
        """The config that is written."""
        assert self.targets.config is not None
        return self.targets.config

    def changes(self, catalogue: Catalogue) -> Iterator[FileChange]:
        """Yield the changes, in an order in which every step leaves files that can be started from.

        Raises:
            NotWritten: a file would be like none that can be read.
        """
        file = self.targets.connections or companion(self.config, "connections")
        old, new = _filed(file, catalogue), self.snapshot.connections
        clashing = {name for name in old.keys() & new.keys() if old[name].kind != new[name].kind}
        free = (name for number in count(1) if (name := f"saving-{number}") not in {*old, *new})
        aliases = dict(zip(sorted(clashing), free, strict=False))
        renamed = {alias: new[name] for name, alias in aliases.items()}
        first = {**old, **{name: new[name] for name in new.keys() - clashing}, **renamed}
        if first or os.path.lexists(file):
            is_new = self.is_new and self.targets.connections is None
            yield _connections(file, first, is_new=is_new)
        if aliases:
            yield self._config(aliases)
            yield _connections(file, {**new, **renamed})
        yield change(layout_file(self.config), self.layout.dump(), "json", is_new=self.is_new)
        yield self._config(is_new=self.is_new)
        if first.keys() != new.keys():
            yield _connections(file, new)

    def _config(
        self, aliases: Mapping[str, str] = NO_ALIASES, *, is_new: bool = False
    ) -> FileChange:
        format = self.format or format_of(self.config)
        return change(self.config, self.snapshot.config(aliases), format, is_new=is_new)


def change(file: Path, document: Any, format: Format, **how: bool) -> FileChange:
    """Return the change of a file, ``how`` as `FileChange` has it.

    Raises:
        NotWritten: it could not be read again.
    """
    try:
        return FileChange(file, write(document, format), **how)
    except Unwritable as cause:
        raise NotWritten(f"'{file.name}' could not be read again: {cause}") from cause


def _connections(
    file: Path, filed: Mapping[str, Connection], *, is_new: bool = False
) -> FileChange:
    """Return the change of a file that may hold credentials that are written out."""
    return change(file, dumped_connections(filed), format_of(file), is_new=is_new, is_private=True)


def _filed(file: Path, catalogue: Catalogue) -> Mapping[str, Connection]:
    """Return the connections that are on file; none if a start would refuse them anyway."""
    with suppress(Unreadable):
        return load_connections(read_file(file), catalogue)[0] or {}
    return {}


def _write(name: str, save: Save, files: Files, catalogue: Catalogue) -> None:
    """Write the files, and log why what was saved cannot be started from as it is."""
    if save.is_new and (there := existing(save.targets)):
        raise FilesExist(there)
    check_what_stands(name, save.targets, files)
    try:
        replace([*save.changes(catalogue)])
    except TakenMeanwhile as cause:
        raise FilesExist([cause.file]) from cause
    config, many = save.config, len(save.snapshot.pipelines)
    log.info("saved %s to '%s'", counted(many, "pipeline"), config)
    read_as = format_of(config)
    if save.format not in (None, read_as):
        log.warning(
            "'%s' is written as %s, and read as %s because of its name",
            config,
            save.format,
            read_as,
        )
    for objection in save.snapshot.dangling():
        log.warning("'%s' cannot be started from as it is saved: %s", config, objection)


def _write_layout(config: Path, files: Files, used: Iterable[Path], layout: LayoutFile) -> None:
    file = layout_file(config)
    if objection := objection_to([(file, "layout file")], files, used):
        raise LayoutTaken(objection)
    replace([change(file, layout.dump(), "json")])
