"""What is told of a pipeline: plain values, which the text, the graphs and JSON show alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.authoring.explaining.inmemory import InMemory
from headrace.authoring.explaining.loops import GeneratedLoop, GeneratedSelection
from headrace.compiler.errors import FailureClass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; line and column count from 1."""

    file: str | None
    line: int | None
    column: int | None

    def __str__(self) -> str:
        return ":".join(str(each) for each in (self.file, self.line, self.column) if each)


@dataclass(frozen=True, slots=True)
class ExplainedOption:
    """What an option of a component holds: a number, a word, a truth value, or the tag of an object."""

    name: str
    value: str | int | float | bool
    is_default: bool
    """Whether the config leaves it out."""


@dataclass(frozen=True, slots=True)
class ExplainedConnection:
    """A connection that a component names, and where that is on file."""

    name: str
    kind: str
    place: str


@dataclass(frozen=True, slots=True)
class ExplainedPromise:
    """One thing that a component promises with the options that it has."""

    name: str
    """Under which its tests are listed: ``kafka.on_delivery.kill``."""
    about: str
    text: str
    said: str
    """The same as it is said by itself."""


@dataclass(frozen=True, slots=True)
class ExplainedFailure:
    """One cause for which a component fails."""

    name: str
    """Under which its tests are listed: ``postgres.output.fails.undefined_table``."""
    class_: FailureClass
    codes: tuple[str, ...]
    text: str
    mark: str
    """``tried`` against the other side, or only ``documented``."""
    source: str | None
    """Where it is documented, if it is not tried."""


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """An input, a transform or an output."""

    called: str
    """Its place in the pipeline: ``inputs[0]``."""
    kind: str
    place: Place
    options: tuple[ExplainedOption, ...]
    connections: tuple[ExplainedConnection, ...]
    promises: tuple[ExplainedPromise, ...]
    failures: tuple[ExplainedFailure, ...]
    notes: tuple[str, ...]
    """What else there is to say, a clause each."""
    upstream: str | None = None
    """The pipeline that an input reads."""


@dataclass(frozen=True, slots=True)
class ExplainedSecret:
    """A name that is resolved when the pipeline is built, and which option holds it."""

    name: str
    option: str


@dataclass(frozen=True, slots=True)
class ExplainedPipeline:
    """A pipeline."""

    id: str | None
    """None: the config leaves it out, and it runs under another one each time."""
    called: str
    place: Place
    reads: tuple[str, ...]
    read_by: tuple[str, ...]
    buckets: tuple[str, ...]
    inputs: tuple[ExplainedPart, ...]
    transforms: tuple[ExplainedPart, ...]
    outputs: tuple[ExplainedPart, ...]
    loops: tuple[GeneratedLoop, ...]
    selections: tuple[GeneratedSelection, ...]
    acknowledges: tuple[str, ...]
    in_memory: InMemory
    restart: tuple[str, ...]
    """What a server's stop in order, and the start after it, do to it."""
    secrets: tuple[ExplainedSecret, ...]
    dead_letters: str | None = None
    """What becomes of what cannot be done, where it is kept."""

    def parts(self) -> Iterator[ExplainedPart]:
        """Yield the components, in the order of a config."""
        yield from (*self.inputs, *self.transforms, *self.outputs)
