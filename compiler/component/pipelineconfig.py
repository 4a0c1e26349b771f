"""The config of a pipeline: its options, what they say together, its id, and where two of them differ.

Values count as they are once defaults are filled in, so writing a default out is no difference. What is
equal in Python and not in JSON (`1`, `1.0`, `true`) differs: messages may carry it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Self, cast

from headrace.compiler.component.deadletteroptions import (
    DEAD_LETTERS,
    LETTERS_KEPT,
    DeadLetterKeeping,
    DeadLetterOptions,
)
from headrace.compiler.component.families import Component, Input, Output, Stage, Transform
from headrace.compiler.component.states import PipelineState
from headrace.compiler.decimals import Written
from headrace.compiler.schema.fields import ConnectionName, Identifier
from headrace.compiler.schema.records import Record, dumped, option
from headrace.compiler.schema.structures import (
    ComponentOf,
    ListOf,
    RecordOf,
    settings_of,
    upstreams,
)
from headrace.compiler.text.diagnostics import Diagnostic, Fault, Path
from headrace.compiler.text.documents import Site

TRANSFORMS = 100
"""How many transforms a pipeline has at most: each calls the next, and a stack has an end."""

ENDS = 1000
"""How many inputs or outputs it has at most."""

LETTERS = 9
"""Longest word of an id that is generated: with it there are forty million."""


class PipelineConfig(Record):
    """A pipeline: inputs merged, transforms in order, every batch to every output."""

    site: ClassVar[Site] = Site()
    """Where it is written; nowhere if built by hand."""

    id: str | None = option(
        Identifier(),
        "What it is called; a readable random name if left out.",
        default=None,
        elsewhere="key label name title",
    )
    inputs: tuple[Input, ...] = option(
        ListOf(ComponentOf("input"), at_least=1, at_most=ENDS),
        "Where its messages come from.",
        elsewhere="from input source sources",
    )
    transforms: tuple[Transform, ...] = option(
        ListOf(ComponentOf("transform"), at_most=TRANSFORMS),
        "What happens to them, in this order.",
        default=(),
        elsewhere="operators pipeline processor processors stages steps transform",
    )
    outputs: tuple[Output, ...] = option(
        ListOf(ComponentOf("output"), at_most=ENDS),
        "Where they go: every batch to each of them.",
        default=(),
        elsewhere="destination destinations output sink sinks to",
    )
    state: PipelineState | None = option(
        RecordOf(PipelineState), "The bucket that it remembers in and recalls from.", default=None
    )
    dead_letters: DeadLetterKeeping = option(
        DEAD_LETTERS,
        "What cannot be read, done or written is kept on the disk with why, and nothing of it is lost: true"
        " is the same as `{}`. A message that a transform cannot do costs itself then, as with"
        " `on_error: skip`. It takes a server with `--data-dir`.",
        default=None,
        additive=True,
        elsewhere="dead_letter dead_letter_queue dlq errors quarantine",
    )

    def __post_init__(self) -> None:
        """Have a message that fails cost itself, where it is kept then."""
        super().__post_init__()
        if self.dead_letters is not None:
            alone = tuple(  # of a draft they are not read yet
                each.failing_alone() if isinstance(each, Transform) else each
                for each in self.transforms
            )
            object.__setattr__(self, "transforms", alone)

    @property
    def letters(self) -> DeadLetterOptions | None:
        """What is meant by its `dead_letters`; None: what cannot be done is lost."""
        return LETTERS_KEPT if self.dead_letters is True else self.dead_letters

    def standing(self, site: Site) -> Self:
        """Have it know where it is written; return it."""
        object.__setattr__(self, "site", site)
        return self

    def diagnose(self, fault: Fault, path: Path = ()) -> Diagnostic:
        """Return a fault found at ``path`` of the pipeline, with its place in the file."""
        return self.site.inside(*path).diagnose(fault)

    @property
    def upstreams(self) -> list[str]:
        """The pipelines it reads from."""
        return [name for _, name in self.readings()]

    @property
    def hears_all(self) -> bool:
        """Whether it reads failures of all pipelines that get nothing from it."""
        return any(each.hears_all() for each in self.inputs)

    def readings(self) -> Iterator[tuple[Path, str]]:
        """Yield the pipelines it reads from, each with the path of where it says so."""
        return upstreams(settings_of(self))

    @property
    def connections(self) -> set[str]:
        """The connections it names."""
        return {name for _, _, name in self.namings()}

    def namings(self) -> Iterator[tuple[Path, str, str]]:
        """Yield where it names a connection, with the kind that is wanted there and the name."""
        for path, known, value in settings_of(self):
            if isinstance(known, ConnectionName):
                yield path, known.connection_kind, value

    def asking(self) -> Iterator[int]:
        """Yield the indices of its transforms that ask servers."""
        return (index for index, each in enumerate(self.transforms) if each.asks)

    def components(self) -> Iterator[Component]:
        """Yield its components, in the order of a config."""
        for name in FAMILY_OF:
            yield from getattr(self, name)

    def dump(self, id: str | None = None, *, masked: bool = True) -> dict[str, Any]:
        """Return the config as the API echoes it, under the ``id`` it runs.

        Not ``masked``, as a save writes it: with the credentials that are spelled out in a url.
        """
        told = self.values() if id is None else self.values() | {"id": id}
        return {
            name: dumped(value, masked=masked) for name, value in told.items() if value is not None
        }


FAMILY_OF: Mapping[str, Stage] = {
    name: cast(Stage, known.field.inner.family)
    for name, known in PipelineConfig.options().items()
    if isinstance(known.field, ListOf) and isinstance(known.field.inner, ComponentOf)
}
"""The lists of components that a pipeline has, and what they are lists of."""

LIST_OF: Mapping[Stage, str] = {family: name for name, family in FAMILY_OF.items()}
"""The list that components of a family are in."""


def generated_id(taken: Collection[str] = ()) -> str:
    """Return an adverb, an adjective and an animal, together not yet taken: ``gladly-quiet-heron``."""
    # Loading the words takes a few milliseconds, and few pipelines come without an id.
    import petname  # type: ignore[import-untyped]

    while (name := str(petname.generate(3, "-", LETTERS))) in taken:
        pass
    return name


def differing(before: PipelineConfig, after: PipelineConfig) -> Iterator[Path]:
    """Yield the settings in which two pipelines differ, their ids aside."""
    yield from _within(before.values() | {"id": None}, after.values() | {"id": None}, ())


def is_same(before: Any, after: Any) -> bool:
    """Return whether two values of a config mean the same."""
    return next(differences(before, after), None) is None


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what differs; of lists that differ in length, that of the list."""
    if type(before) is not type(after):
        yield path
    elif isinstance(before, Record):
        yield from _within(before.values(), after.values(), path)
    elif isinstance(before, dict):
        # In order: a constant is handed on as it is written.
        yield from [path] if [*before] != [*after] else _within(before, after, path)
    elif isinstance(before, tuple | list):
        has_changed = len(before) != len(after)
        yield from [path] if has_changed else _within(dict(enumerate(before)), after, path)
    elif not _is_equal(before, after):
        yield path


def _within(before: Mapping[Any, Any], after: Any, path: Path) -> Iterator[Path]:
    for key, value in before.items():
        yield from differences(value, after[key], (*path, key))


def _is_equal(before: Any, after: Any) -> bool:
    if isinstance(before, Written):
        return bool(before.text == after.text)
    if isinstance(before, float):
        return repr(before) == repr(after)  # -0.0 is written as such
    return bool(before == after)
