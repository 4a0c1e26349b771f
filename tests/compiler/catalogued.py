"""Components for tests of the language: they can be written in a config, and are never built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Connection, Input, Output, Transform
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.schema.fields import (
    AnyJson,
    Boolean,
    Choice,
    ConnectionName,
    Integer,
    MessageField,
    Number,
    PipelineId,
    SecretText,
    Text,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Diagnostic, Fault, Severity
from headrace.compiler.text.documents import Document, read


class Well(Connection, kind="well"):
    """Where a bucket is let down."""

    host: str = option(Text(), "Where it is.")
    depth: int = option(Integer(min=1, max=99), "How deep it is.", default=9)
    password: Secret = option(SecretText(), "What opens it.", default=Secret(""))


class Mill(Connection, kind="mill"):
    """Where a wheel turns."""

    host: str = option(Text(), "Where it is.")


class Spring(Input, kind="spring", listed=1):
    """Flows."""

    litres: float | None = option(Number(above=0), "How much.", default=None)


class Gate(Input, kind="gate", listed=2):
    """Is opened from outside."""

    is_only: ClassVar[bool] = True

    token: Secret | None = option(SecretText(), "What opens it.", default=None)


class Bucket(Input, kind="bucket", listed=3):
    """Is let down into a well, and tells it when it is empty again."""

    acknowledges: ClassVar[bool] = True
    attaches: ClassVar = {"rope": "How long the rope was."}

    connection: str = option(ConnectionName("well"), "Which well.")
    max_batch: int = option(Integer(), "Most cups of it.", default=1)


class Pipe(Input, kind="pipe", listed=4):
    """Reads another pipeline."""

    upstream: str = option(PipelineId(), "Which one.")

    def is_batching(self) -> bool:
        return True


class Mesh(Record):
    """How fine a sieve is."""

    width: int = option(Integer(min=1), "Between two wires.")
    round: bool = option(Boolean(), "Whether the holes are.", default=False)


class Sieve(Transform, kind="sieve", listed=1):
    """Holds back."""

    field: str = option(MessageField(), "Which field.")
    mesh: Mesh | None = option(RecordOf(Mesh), "How fine.", default=None)
    meshes: tuple[Mesh, ...] = option(ListOf(RecordOf(Mesh)), "One after the other.", default=())
    keep: str = option(
        Choice("coarse", "fine", never_absent=True), "What is kept.", default="coarse"
    )
    on_missing: str = option(
        Choice("error", "null", null_word=True, never_absent=True),
        "What is put where nothing is.",
        default="error",
    )
    word: str | None = option(Choice("yes", "no"), "A word.", default=None)
    from_: object = option(AnyJson(), "Anything.", default=None)

    def rules(self) -> Iterator[Fault]:
        if self.mesh is not None and self.meshes:
            yield Fault("conflict", "one mesh or several, not both", path=("meshes",))


class Sink(Output, kind="sink", listed=1):
    """Drains."""


class Wheel(Output, kind="wheel", listed=2):
    """Turns."""

    connection: str = option(ConnectionName("mill"), "Which mill.")
    label: str = option(Text(), "What is written on it.", default="")


CATALOGUE = Catalogue([Well, Mill, Spring, Gate, Bucket, Pipe, Sieve, Sink, Wheel])


def written(text: str) -> Document:
    """Return the document of a YAML text."""
    return read(text, "mill.yaml", "yaml")


def program(text: str) -> Program:
    """Return the program of a YAML text with which nothing is wrong."""
    loaded, diagnostics = load_program(written(text), CATALOGUE)
    assert loaded is not None, plain(diagnostics)
    return loaded


def said(text: str) -> list[str]:
    """Return what is said about a YAML text, line by line."""
    return plain(load_program(written(text), CATALOGUE)[1])


def plain(diagnostics: list[Diagnostic]) -> list[str]:
    """Return diagnostics as lines: where, path, message."""
    return [
        f"{each.line}:{each.column}: {each.path}: "
        + ("warning: " if each.severity is Severity.WARNING else "")
        + each.message
        for each in diagnostics
    ]
