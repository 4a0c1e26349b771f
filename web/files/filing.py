"""The files that a server works against: what it was started from, and what it saves to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace as with_changes
from pathlib import Path

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.switching import SWITCHING
from headrace.compiler.schema.records import listed
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.render import render
from headrace.web.engineprotocol import Engine
from headrace.web.files.layoutfile import LayoutFile, layout_file
from headrace.web.files.reading import Files, Loaded, read_layout
from headrace.web.files.replacing import FileChange, TakenMeanwhile, replace
from headrace.web.files.targets import check_what_stands, format_of, objection_to, targets_of
from headrace.web.files.versions import Versions, written

log = logging.getLogger("headrace.web")


class FilesExist(HeadraceError):
    """A save that must not replace anything finds files in its place; nothing was written."""

    def __init__(self, files: Sequence[Path]) -> None:
        names = listed([file.name for file in files])
        is_there = "exists" if len(files) == 1 else "exist"
        super().__init__(f"nothing was saved: {names} {is_there}, and 'overwrite' is false")
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
            chosen = format or format_of(targets.config)
            snapshot = self._snapshot()
            versions = Versions(snapshot, self.layout, targets, chosen, is_new=not overwrites)
            # In a thread, because disks take their time, and so do a thousand pipelines.
            with SWITCHING.often():
                await asyncio.to_thread(_write, name, versions, self.files, catalogue)
            self._settle(snapshot)
            if self.files.config is None:
                self.files = with_changes(self.files, config=targets.config)
                self._engine.move(self.directory)
        return targets.config

    async def arrange(self, layout: LayoutFile) -> None:
        """Take a layout; with a config, write it beside that.

        Raises:
            LayoutTaken: its file is used for something else.
            NotWritten: the layout is as it was.
        """
        async with self.lock:
            if self.files.config is not None:
                used = list(await self._engine.files())
                await asyncio.to_thread(_write_layout, self.files, used, layout)
            self.layout = layout

    def _settle(self, snapshot: Snapshot) -> None:
        self._filed = self._compared = snapshot
        self._has_changed = False

    def _snapshot(self) -> Snapshot:
        """Return what runs now. What may still be refused does not run."""
        engine = self._engine
        return Snapshot(engine.configs(), dict(engine.connections), dict(engine.declarations))


def _write(name: str, versions: Versions, files: Files, catalogue: Catalogue) -> None:
    targets = versions.targets
    if versions.is_new and (existing := targets.existing()):
        raise FilesExist(existing)
    check_what_stands(name, targets, files)
    try:
        replace([*versions.changes(catalogue)])
    except TakenMeanwhile as cause:
        raise FilesExist([cause.file]) from cause
    count = len(versions.snapshot.pipelines)
    log.info("saved %d pipeline%s to '%s'", count, "" if count == 1 else "s", targets.config)
    _warn(versions)


def _write_layout(files: Files, used: Iterable[Path], layout: LayoutFile) -> None:
    assert files.config is not None
    file = layout_file(files.config)
    if objection := objection_to([(file, "layout file")], files, used):
        raise LayoutTaken(objection)
    replace([FileChange(file, written(file, layout.dump(), "json"))])


def _warn(versions: Versions) -> None:
    """Log why what was saved cannot be started from as it is."""
    config, format = versions.targets.config, versions.format
    if format != (read := format_of(config)):
        log.warning(
            "'%s' is written as %s, and read as %s because of its name", config, format, read
        )
    for objection in versions.snapshot.dangling():
        log.warning("'%s' cannot be started from as it is saved: %s", config, objection)
