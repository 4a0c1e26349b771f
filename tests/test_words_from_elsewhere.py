"""What users of other tools would write is answered with our word, and with one only."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.families import FAMILIES
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.program import ProgramShape
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf
from headrace.compiler.schema.variants import VariantOf, other_kinds
from headrace.compiler.text.suggest import nearest, others

CATALOGUE = catalogue()

Vocabulary = tuple[str, dict[str, str], dict[str, str]]
"""What it is of, our words with what they are called elsewhere, and the same turned around."""


def inner(field: Any) -> Any:
    """Return the field that lists and objects by name are made of."""
    while isinstance(field, ListOf | ObjectOf):
        field = field.inner
    return field


def within(
    record: type[Record], around: frozenset[type[Record]] = frozenset()
) -> Iterator[Vocabulary]:
    """Yield every set of words of a record: its keys, its choices, and those of what it holds.

    ``around`` are those that it lies in: some hold their own kind, whose words are told there.
    """
    if record in around:
        return
    around |= {record}
    options = record.options()
    keys = {wire: known.elsewhere for wire, known in options.items()}
    yield f"keys of {record.__name__}", keys, dict(record.other_keys())
    for wire, known in options.items():
        field = inner(known.field)
        if isinstance(field, Choice):
            named: dict[str, list[str]] = {word: [] for word in field.words}
            for other, ours in field.others.items():
                named[ours].append(other)
            words = {ours: " ".join(said) for ours, said in named.items()}
            yield f"{record.__name__}.{wire}", words, dict(field.others)
        elif isinstance(field, RecordOf):
            yield from within(field.record, around)
        elif isinstance(field, VariantOf):
            yield from of_kinds(field.union.__name__, field.union.variants, around)


def of_kinds(
    name: str, kinds: Any, around: frozenset[type[Record]] = frozenset()
) -> Iterator[Vocabulary]:
    words = {kind: record.elsewhere for kind, record in kinds.items()}
    yield f"kinds of {name}", words, dict(other_kinds(kinds))
    for record in kinds.values():
        yield from within(record, around)


def vocabularies() -> Iterable[Vocabulary]:
    found = [
        *within(ProgramShape),
        *within(PipelineConfig),
        *within(BucketDeclaration),
        *(each for family in FAMILIES for each in of_kinds(family, CATALOGUE.family(family))),
    ]
    return {name: (name, ours, theirs) for name, ours, theirs in found}.values()


every_vocabulary = pytest.mark.parametrize(
    ("ours", "theirs"), [pytest.param(*words, id=name) for name, *words in vocabularies()]
)


@every_vocabulary
def test_a_word_from_elsewhere_is_none_of_ours_and_said_once(
    ours: dict[str, str], theirs: dict[str, str]
) -> None:
    said = [word for text in ours.values() for word in text.split()]

    assert set(said) & set(ours) == set()
    assert sorted(said) == sorted(set(said))
    assert others(ours) == theirs


@every_vocabulary
def test_a_word_from_elsewhere_finds_ours(ours: dict[str, str], theirs: dict[str, str]) -> None:
    wrong = {
        other: nearest(other, ours, theirs)
        for other, known in theirs.items()
        if nearest(other, ours, theirs) != known
    }

    assert wrong == {}
