"""What stands beside a config: the connections file, the secrets file, and what names either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath

from marshmallow import ValidationError

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.drafts import DraftComponent, is_refused, loaded, part_of
from headrace.compiler.component.families import Component, Connection
from headrace.compiler.lint.remarks import literal_references
from headrace.compiler.schema.fields import ConnectionName, Identifier
from headrace.compiler.schema.records import Record, faults_of, of_another_type, option
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.schema.structures import Setting, settings_of
from headrace.compiler.text.diagnostics import (
    Codes,
    Diagnostic,
    Fault,
    Severity,
    in_file_order,
    shown,
)
from headrace.compiler.text.documents import Document, Site
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "unknown-connection": "A component names a connection that is not filed.",
}

_ANY_GROUND = CheckContext()


Filed = Component | type[Component]
"""A connection, or the class of one that has faults of its own; its ``kind`` is empty if unknown."""


def companion(config: FilePath, subject: str) -> FilePath:
    """Return the file beside a config: ``plant.yml`` has ``plant.connections.yaml``."""
    is_yaml = config.suffix.lower() in (".yaml", ".yml")
    return config.with_name(f"{config.stem}.{subject}.{'yaml' if is_yaml else 'json'}")


def load_connections(
    document: Document,
    catalogue: Catalogue,
    secrets: Secrets | None = None,
    context: CheckContext = _ANY_GROUND,
) -> tuple[dict[str, Connection] | None, list[Diagnostic]]:
    """Read the connections by name, and tell all that is wrong with any of them (`ConnectionsFile`)."""
    return ConnectionsFile(document, catalogue).load(secrets, context)


class ConnectionsFile:
    """A file of connections, read once: what is filed, and what is wrong with it."""

    def __init__(self, document: Document, catalogue: Catalogue) -> None:
        site = Site(document)
        self._parts: dict[str, DraftComponent] = {}
        self._said: list[Diagnostic] = []
        if not isinstance(document.value, dict):
            self._said.append(site.diagnose(of_another_type(document.value)))
            return
        for name, value in document.value.items():
            self._said += map(site.diagnose, _misnaming(name))
            inside = site.inside(name)
            self._parts[name], wrong = part_of(value, inside, "connection", catalogue)
            self._said += wrong

    def filed(self) -> dict[str, Filed]:
        """Return what is filed under each name, also where it has faults: enough to check names."""
        return {name: part.built or part.component for name, part in self._parts.items()}

    def load(
        self, secrets: Secrets | None = None, context: CheckContext = _ANY_GROUND
    ) -> tuple[dict[str, Connection] | None, list[Diagnostic]]:
        """Return the connections by name unless one is refused, and all that is wrong with any of them.

        With ``secrets``, references that nothing answers are warned of.
        """
        said = [*self._said]
        for part in self._parts.values():
            said += _judged(part, secrets, context)
        built = {name: part.built for name, part in self._parts.items()}
        connections = {name: each for name, each in built.items() if isinstance(each, Connection)}
        return None if is_refused(said) else connections, in_file_order(said)


class Filing(Record):
    """What a connection is to be filed under."""

    id: str = option(Identifier(), "What components call it.", elsewhere="name")


def load_unfiled(
    document: Document, catalogue: Catalogue, context: CheckContext = _ANY_GROUND
) -> tuple[Connection | None, list[Diagnostic]]:
    """Read one connection without a name, and tell all that is wrong."""
    part, said = part_of(document.value, Site(document), "connection", catalogue)
    said += _judged(part, None, context)
    built = part.built if isinstance(part.built, Connection) and not is_refused(said) else None
    return built, in_file_order(said)


def load_connection(
    document: Document,
    catalogue: Catalogue,
    secrets: Secrets | None = None,
    context: CheckContext = _ANY_GROUND,
) -> tuple[tuple[str, Connection] | None, list[Diagnostic]]:
    """Read one connection, its name beside its own keys as ``id``, and tell all that is wrong.

    It is refused with what a file of connections is refused with, and in the same words: what is
    filed can be saved, and what is saved loads.
    """
    site, value = Site(document), document.value
    if not isinstance(value, dict):
        return None, [site.diagnose(of_another_type(value, "an object with 'id' and 'type'"))]
    # Where the ``id`` is missing, also what is probably meant to be it.
    of_name = {
        key: inner
        for key, inner in value.items()
        if key == "id" or ("id" not in value and nearest(key, ["id"]) is not None)
    }
    rest = {key: inner for key, inner in value.items() if key not in of_name}
    filing, _, faults = loaded(Filing, of_name)
    part, wrong = part_of(rest, site, "connection", catalogue)
    said = [*map(site.diagnose, faults), *wrong, *_judged(part, secrets, context)]
    if filing is None or not isinstance(part.built, Connection) or is_refused(said):
        return None, in_file_order(said)
    return (filing.id, part.built), in_file_order(said)


def load_secrets(document: Document) -> tuple[dict[str, str] | None, list[Diagnostic]]:
    """Read the secrets file, one flat object of strings. No value is ever told."""
    value, faults = document.value, list[Fault]()
    if not isinstance(value, dict):
        faults.append(of_another_type(value))
    else:
        wrong = {name: each for name, each in value.items() if not isinstance(each, str)}
        faults += (
            replace(of_another_type(each, "a string"), path=(name,)) for name, each in wrong.items()
        )
    said = [Site(document).diagnose(fault) for fault in faults]
    return None if faults else value, in_file_order(said)


def secret_faults(found: Iterable[Setting], secrets: Secrets) -> Iterator[Fault]:
    """Yield the references in a component, or in a connection, that nothing answers."""
    return (replace(fault, severity=Severity.ERROR) for fault in unresolved(found, secrets))


def filed_secret_faults(
    found: Iterable[Setting], connections: Mapping[str, Connection], secrets: Secrets
) -> Iterator[Fault]:
    """Yield the references that nothing answers in the connections that a component names."""
    for path, field, name in found:
        if isinstance(field, ConnectionName) and name in connections:
            for fault in secret_faults(settings_of(connections[name]), secrets):
                option = ".".join(map(str, fault.path))
                message = f"'{option}' of connection '{name}': {fault.message}"
                yield replace(fault, message=message, path=path)


def misnamed(found: Iterable[Setting], connections: Mapping[str, Filed]) -> Iterator[Fault]:
    """Yield the settings that name a connection which is not filed, or one of another kind."""
    for path, field, name in found:
        if isinstance(field, ConnectionName) and (
            fault := connection_fault(name, field.connection_kind, connections)
        ):
            yield replace(fault, path=path)


def connection_fault(name: str, wanted: str, connections: Mapping[str, Filed]) -> Fault | None:
    """Return what is wrong with naming a connection of the ``wanted`` kind, if anything is."""
    kind = connections[name].kind if name in connections else None
    if kind in ("", wanted):
        return None
    known = sorted(each for each, filed in connections.items() if filed.kind == wanted)
    fault = Fault(
        "unknown-connection",
        f"there is no {wanted} connection '{name}'"
        if kind is None
        else f"'{name}' is a {kind} connection, and a {wanted} connection is needed",
        found=shown(name),
        expected=one_of(known) if known else f"a {wanted} connection; none is filed",
    )
    return fault.meaning(nearest(name, known) if kind is None else None)


def unresolved(found: Iterable[Setting], secrets: Secrets) -> Iterator[Fault]:
    """Yield the secrets that do not resolve: a warning, unless they never can."""
    for path, _, value in found:
        if isinstance(value, Secret):
            severity = Severity.ERROR if value.is_broken else Severity.WARNING
            for fault in secrets.faults(value):
                yield replace(fault, path=path, severity=severity)


def _judged(
    part: DraftComponent, secrets: Secrets | None, context: CheckContext
) -> Iterator[Diagnostic]:
    """Yield what one connection is refused with or warned of beyond its shape, whoever files it.

    It is judged whole, also while no component names it.
    """
    yield from literal_references(part)
    if part.built is not None:
        yield from map(part.site.diagnose, part.built.examine(context))
    if secrets is not None:
        yield from map(part.site.diagnose, unresolved(part.settings(), secrets))


def _misnaming(name: str) -> Iterator[Fault]:
    """Yield why no connection can be filed under a name: that of a file is the ``id`` of a post."""
    try:
        Identifier().read(name)
    except ValidationError as error:
        for fault in faults_of(error):
            message = "the name of a connection must not be blank"
            said = message if fault.code == "blank" else fault.message
            yield replace(fault, message=said, path=(name,), on_key=True)
