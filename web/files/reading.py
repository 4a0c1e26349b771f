"""The files that a command line names: read, checked, and all that is wrong with them told at once."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Connection
from headrace.compiler.config.connectionsfile import (
    ConnectionsFile,
    Filed,
    companion,
    load_connections,
    load_secrets,
)
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, Judge, Unreadable, likeliest, read, read_file
from headrace.web.auth.settingsfile import ServerSettings, load_settings
from headrace.web.files.fileidentity import clash
from headrace.web.files.layoutfile import LayoutFile, layout_file, load_layout

PIPED = "<stdin>"
"""What the config is called that comes from standard input."""


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
        if self.connections is not None:
            yield self.connections, "connections file"
        if self.secrets is not None:
            yield self.secrets, "secrets file"
        if self.settings is not None:
            yield self.settings, "settings file"

    def connections_file(self) -> Path | None:
        """Return the connections file that counts: the named one, or the config's companion."""
        if self.connections is not None or self.config is None:
            return self.connections
        if not self.config.name:  # `.` or `/`: reading it tells that it is no file
            return None
        beside = companion(self.config, "connections")
        return beside if os.path.exists(beside) else None  # a name too long for a file has none


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
    _check_purposes(loaded)
    secrets = _load_secrets(files.secrets, loaded)
    _load_settings(files.settings, secrets, loaded, is_starting=is_starting)
    _load_program(files, catalogue, secrets, loaded)
    read_layout(loaded)
    return loaded


def load_again(
    files: Files, catalogue: Catalogue, secrets: Secrets, data_dir: Path | None
) -> Loaded:
    """Read connections and config as `load` does; secrets and ``data_dir`` are those of the start."""
    loaded = Loaded(files, base=files.base(), data_dir=data_dir, secrets=secrets)
    _load_program(files, catalogue, secrets, loaded)
    return loaded


def read_layout(loaded: Loaded) -> None:
    """Read the layout file beside the config, if it is there."""
    config = loaded.files.config
    if config is None or not config.name or not os.path.exists(file := layout_file(config)):
        return
    if document := _read(file, loaded, format="json"):
        layout, said = load_layout(document)
        loaded.layout = layout or loaded.layout
        loaded.diagnostics += said


def _check_purposes(loaded: Loaded) -> None:
    """Refuse one file for two things: what is written as the one would be gone as the other."""
    if found := clash(loaded.files.purposes()):
        file, one, other = found
        message = f"this is the {one}, and cannot be the {other} as well"
        loaded.diagnostics.append(
            Diagnostic(file=loaded.files.called(file), code="duplicate", message=message)
        )


def _load_program(
    files: Files, catalogue: Catalogue, secrets: Secrets | None, loaded: Loaded
) -> None:
    connections = _load_connections(files.connections_file(), catalogue, secrets, loaded)
    if files.config is not None or files.piped is not None:
        loaded.program = None
        program_of = partial(
            load_program,
            catalogue=catalogue,
            connections=connections,
            secrets=secrets,
            base=loaded.base,
        )
        if document := _read_config(files, loaded, program_of):
            loaded.program, said = program_of(document)
            loaded.diagnostics += said


def place(file: str | None, position: tuple[int, int] | None) -> str:
    """Return a place as it is printed: ``plant.yaml:3:1``."""
    return ":".join(map(str, [file, *(position or ())]))


def _load_secrets(file: Path | None, loaded: Loaded) -> Secrets | None:
    if file is None:
        return loaded.secrets
    document = _read(file, loaded, format="json")
    loaded.sources.pop(loaded.files.called(file), None)  # no line of it is ever shown
    values, said = load_secrets(document) if document else (None, [])
    loaded.diagnostics += said
    if values is None:
        return None
    loaded.secrets = Secrets(values)
    return loaded.secrets


def _load_settings(
    file: Path | None, secrets: Secrets | None, loaded: Loaded, *, is_starting: bool
) -> None:
    if file is None:
        return
    settings_of = partial(load_settings, secrets=secrets, is_starting=is_starting)
    document = _read(file, loaded, settings_of)
    loaded.sources.pop(loaded.files.called(file), None)  # no line of it is ever shown
    if document is not None:
        settings, said = settings_of(document)
        loaded.settings = settings or loaded.settings
        loaded.diagnostics += said


def _load_connections(
    file: Path | None, catalogue: Catalogue, secrets: Secrets | None, loaded: Loaded
) -> Mapping[str, Filed] | None:
    if file is None:
        return {}
    context = CheckContext(data_dir=loaded.data_dir)
    connections_of = partial(
        load_connections, catalogue=catalogue, secrets=secrets, context=context
    )
    document = _read(file, loaded, connections_of)
    if document is None:
        return None
    filing = ConnectionsFile(document, catalogue)
    connections, said = filing.load(secrets, context)
    loaded.diagnostics += said
    loaded.connections = connections or {}
    loaded.filed_at = {
        name: place(document.file, document.position((name,), on_key=True))
        for name in loaded.connections
    }
    return filing.filed()


def _read_config(files: Files, loaded: Loaded, judge: Judge) -> Document | None:
    """Return what the config says; one without a file is JSON if its first sign is one of JSON's."""
    if files.config is not None:
        return _read(files.config, loaded, judge)
    piped = files.piped or b""
    is_json = piped.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")
    format: Format = "json" if is_json else "yaml"
    return _told(lambda: read(piped, PIPED, format), PIPED, loaded, judge)


def _read(
    file: Path, loaded: Loaded, judge: Judge | None = None, format: Format | None = None
) -> Document | None:
    """Return what a file says if anything can be made of it."""
    called = loaded.files.called(file)
    return _told(lambda: read_file(file, format, called), called, loaded, judge)


def _told(
    reading: Callable[[], Document], called: str, loaded: Loaded, judge: Judge | None
) -> Document | None:
    """Return what is read, and tell what is wrong with it; ``judge`` says what was likely meant."""
    try:
        document = reading()
    except Unreadable as cause:
        loaded.sources[called] = cause.text
        loaded.diagnostics += cause.diagnostics
        if judge and (meaning := likeliest(cause.meanings, judge)):
            loaded.diagnostics += meaning.diagnostics
            return meaning.document
        return cause.document or cause.mended
    loaded.sources[called] = document.text
    return document
