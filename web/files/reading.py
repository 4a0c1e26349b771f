"""The files that a command line names: read, checked, and all that is wrong with them told at once."""

from __future__ import annotations

import logging
import os
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Connection
from headrace.compiler.config.connectionsfile import (
    ConnectionsFile,
    Filed,
    companion,
    load_secrets,
)
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, Unreadable, read, read_file, understood
from headrace.compiler.text.render import render
from headrace.web.auth.settingsfile import ServerSettings, load_settings
from headrace.web.files.layoutfile import LayoutFile, layout_file, load_layout

PIPED = "<stdin>"
"""What the config is called that comes from standard input."""
LINKS = 40
"""How many links are followed one after the other, as the kernel has it."""

FileIdentity = tuple[str | int, ...]
"""A directory without links and the name of a file in it, or the device and the number of a file."""

Purposes = Iterable[tuple[Path, str]]
"""Files, each with what it is for."""

_Filed = tuple[Document, Mapping[str, Filed], Mapping[str, Connection]]
T = TypeVar("T")

log = logging.getLogger("headrace.web")


def catalogue() -> Catalogue:
    """Return every component there is."""
    return scan("headrace.operators", "headrace.connectors")


@dataclass(frozen=True)
class Files:
    """Which files: a config, its connections if they do not stand beside it, secrets, settings."""

    config: Path | None = None
    connections: Path | None = None
    secrets: Path | None = None
    settings: Path | None = None
    piped: bytes | None = field(default=None, repr=False)
    """The config itself, where it is none of the files."""
    given: Mapping[Path, Path] = field(default_factory=dict, compare=False, repr=False)
    """What they were called when they were named from the working directory."""

    def absolute(self) -> Files:
        """Return the same files, wherever the process goes; what is told of them stays as it was.

        Nothing is taken out of the paths: what ``..`` leads to depends on links.
        """
        config, connections, secrets, settings = (
            None if each is None else each.absolute()
            for each in (self.config, self.connections, self.secrets, self.settings)
        )
        given = {file.absolute(): file for file, _ in self.purposes()}
        return Files(config, connections, secrets, settings, self.piped, given)

    def called(self, file: Path) -> str:
        """Return what one of them is called in texts: as it was given, or beside what was given."""
        return str(self.given.get(file, file))

    def base(self) -> Path | None:
        """Return the directory that files of the config are named from, wherever the process goes."""
        if self.piped is not None:
            return Path.cwd()
        return None if self.config is None else self.config.absolute().parent

    def purposes(self) -> Iterator[tuple[Path, str]]:
        """Yield each file, whether it is there or not, with what it is for."""
        if self.config is not None and self.config.name:
            yield self.config, "config"
            if self.connections is None:
                yield companion(self.config, "connections"), "connections file"
            yield layout_file(self.config), "layout file"
        named = [
            (self.connections, "connections file"),
            (self.secrets, "secrets file"),
            (self.settings, "settings file"),
        ]
        yield from ((file, purpose) for file, purpose in named if file is not None)

    def connections_file(self) -> Path | None:
        """Return where the connections are, or would be: the named file, or the config's companion."""
        if self.connections is not None or self.config is None:
            return self.connections
        # `.` or `/` has none: reading it tells that it is no file
        return companion(self.config, "connections") if self.config.name else None


def written_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is put in the place of a file is: a link is replaced, and not followed."""
    yield os.path.realpath(file.parent), file.name
    yield from _number(file, os.lstat)


def read_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is read as a file comes from: every link that leads to it, and the file."""
    link = file
    for _ in range(LINKS):
        directory = os.path.realpath(link.parent)
        yield directory, link.name
        try:
            link = Path(directory) / os.readlink(link)
        except (OSError, ValueError):
            break
    yield from _number(file, os.stat)


def _number(file: Path, look: Callable[[Path], os.stat_result]) -> Iterator[FileIdentity]:
    """Yield what tells a regular file from all others, whatever it is called."""
    try:
        found = look(file)
    except (OSError, ValueError):  # the latter for what no file can be called
        return
    if stat.S_ISREG(found.st_mode):
        yield found.st_dev, found.st_ino


def clash(purposes: Purposes) -> tuple[Path, str, str] | None:
    """Return a file that is for two things, and which; None if each is for one."""
    found: dict[FileIdentity, str] = {}
    for file, purpose in purposes:
        for each in read_places(file):
            if found.setdefault(each, purpose) != purpose:
                return file, found[each], purpose
    return None


@dataclass
class Loaded:
    """What the files say, and what is wrong with them."""

    files: Files = field(default_factory=Files)
    program: Program | None = field(default_factory=lambda: Program(()))
    connections: Mapping[str, Connection] = field(default_factory=dict)
    filed_at: Mapping[str, str] = field(default_factory=dict)
    """File, line and column of each connection."""
    secrets: Secrets = field(default_factory=Secrets)
    settings: ServerSettings = field(default_factory=ServerSettings)
    """Who may reach the server, and for how long it remembers."""
    layout: LayoutFile = field(default_factory=LayoutFile)
    base: Path | None = None
    """The directory that files of the config are named from."""
    data_dir: Path | None = None
    """The root of all files that are written, if that is known."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    """Texts by file, to show the lines in question."""

    @property
    def is_refused(self) -> bool:
        """Whether something is wrong that has to be mended first."""
        return any(one.severity is Severity.ERROR for one in self.diagnostics)

    def take(
        self,
        file: Path | None,
        load: Callable[[Document], tuple[T | None, Sequence[Diagnostic]]],
        format: Format | None = None,
        *,
        is_secret: bool = False,
    ) -> T | None:
        """Return what a file holds, or without one what is piped; tell all that is wrong with it.

        ``load`` reads the document of it, and judges what a malformed one was likely meant to be. No
        line of a file that ``is_secret`` is ever shown.
        """
        called = PIPED if file is None else self.files.called(file)
        found: Document | None
        try:
            found = self._piped() if file is None else read_file(file, format, called)
            text = found.text
        except Unreadable as cause:
            told, found = understood(cause, load)
            text = cause.text
            self.diagnostics += told
        if not is_secret:
            self.sources[called] = text
        if found is None:
            return None
        value, said = load(found)
        self.diagnostics += said
        return value

    def _piped(self) -> Document:
        """Return what was piped; it is JSON if its first sign is one of JSON's."""
        piped = self.files.piped or b""
        is_json = piped.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")
        return read(piped, PIPED, "json" if is_json else "yaml")


def load(
    files: Files,
    catalogue: Catalogue,
    *,
    data_dir: Path | None = None,
    is_starting: bool = False,
) -> Loaded:
    """Read secrets, settings, connections, config and layout, whatever is wrong with any of them.

    References that nothing answers are warned of: who builds the pipelines has the last word, and
    a server that ``is_starting`` about its accounts. With a ``data_dir``, connections that lead out of
    it are refused. What could not be read leaves open whether the
    names in it exist, so nobody is told that they do not.
    """
    loaded = Loaded(files, base=files.base(), data_dir=data_dir)
    if found := clash(files.purposes()):
        file, one, other = found  # what is written as the one would be gone as the other
        message = f"this is the {one}, and cannot be the {other} as well"
        loaded.diagnostics.append(
            Diagnostic(file=files.called(file), code="duplicate", message=message)
        )
    secrets: Secrets | None = loaded.secrets
    if files.secrets is not None:
        values = loaded.take(files.secrets, load_secrets, "json", is_secret=True)
        secrets = None if values is None else Secrets(values)
        loaded.secrets = secrets or loaded.secrets
    if files.settings is not None:
        settings_of = partial(load_settings, secrets=secrets, is_starting=is_starting)
        settings = loaded.take(files.settings, settings_of, is_secret=True)
        loaded.settings = settings or loaded.settings
    _load_program(catalogue, secrets, loaded)
    read_layout(loaded)
    return loaded


def load_again(
    files: Files, catalogue: Catalogue, secrets: Secrets, data_dir: Path | None
) -> Loaded:
    """Read connections and config as `load` does; secrets and ``data_dir`` are those of the start."""
    loaded = Loaded(files, base=files.base(), data_dir=data_dir, secrets=secrets)
    _load_program(catalogue, secrets, loaded)
    return loaded


def read_layout(loaded: Loaded) -> None:
    """Read the layout file beside the config, if it is there."""
    config = loaded.files.config
    if config is not None and config.name and os.path.exists(file := layout_file(config)):
        loaded.layout = loaded.take(file, load_layout, "json") or loaded.layout


def _load_program(catalogue: Catalogue, secrets: Secrets | None, loaded: Loaded) -> None:
    connections = _load_connections(catalogue, secrets, loaded)
    files = loaded.files
    if files.config is not None or files.piped is not None:
        program_of = partial(
            load_program,
            catalogue=catalogue,
            connections=connections,
            secrets=secrets,
            base=loaded.base,
        )
        loaded.program = loaded.take(files.config, program_of)


def _load_connections(
    catalogue: Catalogue, secrets: Secrets | None, loaded: Loaded
) -> Mapping[str, Filed] | None:
    """Read the connections file; return what is filed, None if that cannot be told."""
    file = loaded.files.connections_file()
    # Only one that is named has to be there; a name too long for a file has none.
    if file is None or not (loaded.files.connections or os.path.exists(file)):
        return {}

    def filed_of(document: Document) -> tuple[_Filed, Sequence[Diagnostic]]:
        filing = ConnectionsFile(document, catalogue)
        connections, said = filing.load(secrets, CheckContext(data_dir=loaded.data_dir))
        return (document, filing.filed(), connections or {}), said

    if (found := loaded.take(file, filed_of)) is None:
        return None
    document, filed, loaded.connections = found
    loaded.filed_at = {
        name: place(document.file, document.position((name,), on_key=True))
        for name in loaded.connections
    }
    return filed


def place(file: str | None, position: tuple[int, int] | None) -> str:
    """Return a place as it is printed: ``plant.yaml:3:1``."""
    return ":".join(map(str, [file, *(position or ())]))


def log_each(diagnostics: Iterable[Diagnostic]) -> None:
    """Log each of the diagnostics, and in JSON its parts as well."""
    for one in diagnostics:
        level = logging.ERROR if one.severity is Severity.ERROR else logging.WARNING
        log.log(level, "%s", render([one], style="plain"), extra={"diagnostic": one})


def log_odd(loaded: Loaded) -> None:
    """Log what is odd about the files. What a build decides, a build says."""
    log_each(each for each in loaded.diagnostics if each.code != "unresolved-secret")
