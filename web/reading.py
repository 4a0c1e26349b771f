"""The files that a command line names: read, checked, and all that is wrong with them told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.compiler.language.catalogue import Catalogue, scan
from headrace.compiler.language.config import Program, load_program
from headrace.compiler.language.connections import (
    Filed,
    companion,
    filed,
    load_connections,
    load_secrets,
)
from headrace.compiler.language.decoding import Format
from headrace.compiler.language.diagnostics import Diagnostic, Severity
from headrace.compiler.language.documents import Document, Unreadable, read_file
from headrace.compiler.language.families import Connection
from headrace.compiler.language.secrets import Secrets


def catalogue() -> Catalogue:
    """Return every component there is."""
    return scan("headrace.operators", "headrace.connectors")


@dataclass(frozen=True)
class Files:
    """Which files: a config, its connections if they do not stand beside it, the secrets."""

    config: Path | None = None
    connections: Path | None = None
    secrets: Path | None = None

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

    program: Program | None = field(default_factory=lambda: Program(()))
    connections: Mapping[str, Connection] = field(default_factory=dict)
    filed_at: Mapping[str, str] = field(default_factory=dict)
    """File, line and column of each connection."""
    secrets: Secrets = field(default_factory=Secrets)
    base: Path | None = None
    """The directory that files of the config are named from."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    """Texts by file, to show the lines in question."""

    @property
    def is_refused(self) -> bool:
        """Whether something is wrong that has to be mended first."""
        return any(one.severity is Severity.ERROR for one in self.diagnostics)


def load(files: Files, catalogue: Catalogue) -> Loaded:
    """Read secrets, connections and config, whatever is wrong with any of them.

    References that nothing answers are warned of: who builds the pipelines has the last word. What
    could not be read leaves open whether the names in it exist, so nobody is told that they do not.
    """
    loaded = Loaded(base=files.config.parent if files.config is not None else None)
    secrets = _load_secrets(files.secrets, loaded)
    connections = _load_connections(files.connections_file(), catalogue, secrets, loaded)
    if files.config is not None:
        loaded.program = None
        if document := _read(files.config, loaded):
            loaded.program, said = load_program(
                document,
                catalogue,
                connections=connections,
                secrets=secrets,
                base=loaded.base,
            )
            loaded.diagnostics += said
    return loaded


def place(file: str | None, position: tuple[int, int] | None) -> str:
    """Return a place as it is printed: ``plant.yaml:3:1``."""
    return ":".join(map(str, [file, *(position or ())]))


def _load_secrets(file: Path | None, loaded: Loaded) -> Secrets | None:
    if file is None:
        return loaded.secrets
    document = _read(file, loaded, "json")
    loaded.sources.pop(str(file), None)  # no line of it is ever shown
    values, said = load_secrets(document) if document else (None, [])
    loaded.diagnostics += said
    if values is None:
        return None
    loaded.secrets = Secrets(values)
    return loaded.secrets


def _load_connections(
    file: Path | None, catalogue: Catalogue, secrets: Secrets | None, loaded: Loaded
) -> Mapping[str, Filed] | None:
    if file is None:
        return {}
    document = _read(file, loaded)
    if document is None:
        return None
    connections, said = load_connections(document, catalogue, secrets)
    loaded.diagnostics += said
    loaded.connections = connections or {}
    loaded.filed_at = {
        name: place(str(file), document.position((name,), on_key=True))
        for name in loaded.connections
    }
    return filed(document, catalogue)


def _read(file: Path, loaded: Loaded, format: Format | None = None) -> Document | None:
    """Return what a file says if anything can be made of it."""
    try:
        document = read_file(file, format)
    except Unreadable as cause:
        loaded.sources[str(file)] = cause.text
        loaded.diagnostics += cause.diagnostics
        return cause.document
    loaded.sources[str(file)] = document.text
    return document
