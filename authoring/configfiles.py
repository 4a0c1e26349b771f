"""A config and what stands beside it: read, checked, and all that is wrong with them told at once."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

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

PIPED = "<stdin>"
"""What the config is called that comes from standard input."""

_Filed = tuple[Document, Mapping[str, Filed], Mapping[str, Connection]]
T = TypeVar("T")


def catalogue() -> Catalogue:
    """Return every component there is."""
    return scan("headrace.operators", "headrace.connectors")


@dataclass(frozen=True)
class ConfigFiles:
    """Which files: a config, its connections if they do not stand beside it, and secrets."""

    config: Path | None = None
    connections: Path | None = None
    secrets: Path | None = None
    piped: bytes | None = field(default=None, repr=False, kw_only=True)
    """The config itself, where it is none of the files."""
    given: Mapping[Path, Path] = field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )
    """What they were called when they were named from the working directory."""

    def named(self) -> dict[str, Path]:
        """Return the files that were named, by what each is for."""
        named = {"config": self.config, "connections": self.connections, "secrets": self.secrets}
        return {purpose: file for purpose, file in named.items() if file is not None}

    def absolute(self) -> Self:
        """Return the same files, wherever the process goes; what is told of them stays as it was.

        Nothing is taken out of the paths: what ``..`` leads to depends on links.
        """
        absolute: dict[str, Any] = {key: file.absolute() for key, file in self.named().items()}
        given = {file.absolute(): file for file, _ in self.purposes()}
        return replace(self, given=given, **absolute)

    def purposes(self) -> Iterator[tuple[Path, str]]:
        """Yield each file, whether it is there or not, with what it is for."""
        named = self.named()
        config = named.pop("config", None)
        if config is not None and config.name:
            yield config, "config"
            yield from self.companions(config)
        yield from ((file, f"{purpose} file") for purpose, file in named.items())

    def companions(self, config: Path) -> Iterator[tuple[Path, str]]:
        """Yield what stands beside a config and is read with it."""
        if self.connections is None:
            yield companion(config, "connections"), "connections file"

    def called(self, file: Path) -> str:
        """Return what one of them is called in texts: as it was given, or beside what was given."""
        return str(self.given.get(file, file))

    def base(self) -> Path | None:
        """Return the directory that files of the config are named from, wherever the process goes."""
        if self.piped is not None:
            return Path.cwd()
        return None if self.config is None else self.config.absolute().parent

    def connections_file(self) -> Path | None:
        """Return where the connections are, or would be: the named file, or the config's companion."""
        if self.connections is not None or self.config is None:
            return self.connections
        # `.` or `/` has none: reading it tells that it is no file
        return companion(self.config, "connections") if self.config.name else None


F = TypeVar("F", bound=ConfigFiles)


@dataclass
class LoadedConfig(Generic[F]):
    """What the files say, and what is wrong with them."""

    files: F
    program: Program | None = field(default_factory=lambda: Program(()))
    connections: Mapping[str, Connection] = field(default_factory=dict)
    filed_at: Mapping[str, str] = field(default_factory=dict)
    """File, line and column of each connection."""
    secrets: Secrets = field(default_factory=Secrets)
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

    def take_secrets(self) -> Secrets | None:
        """Read the secrets file, if one is named; return the secrets, None if they cannot be told."""
        if self.files.secrets is None:
            return self.secrets
        values = self.take(self.files.secrets, load_secrets, "json", is_secret=True)
        if values is None:
            return None
        self.secrets = Secrets(values)
        return self.secrets

    def take_program(self, catalogue: Catalogue, secrets: Secrets | None) -> None:
        """Read connections and config.

        What could not be read leaves open whether the names in it exist, so nobody is told that they do
        not; without ``secrets``, nothing is told of references.
        """
        connections = self._take_connections(catalogue, secrets)
        files = self.files
        if files.config is not None or files.piped is not None:
            program_of = partial(
                load_program,
                catalogue=catalogue,
                connections=connections,
                secrets=secrets,
                base=self.base,
                data_dir=self.data_dir,
            )
            self.program = self.take(files.config, program_of)

    def _take_connections(
        self, catalogue: Catalogue, secrets: Secrets | None
    ) -> Mapping[str, Filed] | None:
        """Read the connections file; return what is filed, None if that cannot be told."""
        file = self.files.connections_file()
        # Only one that is named has to be there; a name too long for a file has none.
        if file is None or not (self.files.connections or os.path.exists(file)):
            return {}

        def filed_of(document: Document) -> tuple[_Filed, Sequence[Diagnostic]]:
            filing = ConnectionsFile(document, catalogue)
            connections, said = filing.load(secrets, CheckContext(data_dir=self.data_dir))
            return (document, filing.filed(), connections or {}), said

        if (found := self.take(file, filed_of)) is None:
            return None
        document, filed, self.connections = found
        self.filed_at = {
            name: place(document.file, document.position((name,), on_key=True))
            for name in self.connections
        }
        return filed

    def _piped(self) -> Document:
        """Return what was piped; it is JSON if its first sign is one of JSON's."""
        piped = self.files.piped or b""
        is_json = piped.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")
        return read(piped, PIPED, "json" if is_json else "yaml")


def load_config(
    files: ConfigFiles, catalogue: Catalogue, *, data_dir: Path | None = None
) -> LoadedConfig[ConfigFiles]:
    """Read secrets, connections and config, whatever is wrong with any of them.

    References that nothing answers are warned of: who builds the pipelines has the last word. With a
    ``data_dir``, connections that lead out of it are refused, and outputs that lead into its store.
    """
    loaded = LoadedConfig(files, base=files.base(), data_dir=data_dir)
    loaded.take_program(catalogue, loaded.take_secrets())
    return loaded


def place(file: str | None, position: tuple[int, int] | None) -> str:
    """Return a place as it is printed: ``plant.yaml:3:1``."""
    return ":".join(map(str, [file, *(position or ())]))
