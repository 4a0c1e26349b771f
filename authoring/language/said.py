"""Failures and warnings that a test expects: where, in which words, and how often."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.authoring.language.timelines import type_fault
from headrace.compiler.component.drafts import loaded
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.fields import Integer, Name, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text.diagnostics import Fault, Path


class SaidShape(Record):
    """A failure or a warning that is expected."""

    at: str = option(Name(), "The component: `PIPELINE.transforms[N]`.", elsewhere="where place")
    says: str = option(Text(), "A part of its text.", elsewhere="message text")
    times: int | None = option(
        Integer(min=1), "How often. Left out: at least once.", default=None, elsewhere="count"
    )


@dataclass(frozen=True, slots=True)
class ExpectedWords:
    """What is expected to be said, and where that is written."""

    said: SaidShape
    path: Path


def words(value: JsonValue, path: Path) -> tuple[tuple[ExpectedWords, ...], list[Fault]]:
    """Return a list of what is expected to be said, and what is wrong with how it is written."""
    if not isinstance(value, list):
        expected = "a list of objects with 'at' and 'says', or [] for none"
        return (), [type_fault(value, expected, path)]
    found, faults = list[ExpectedWords](), list[Fault]()
    for index, each in enumerate(value):
        shape, _, wrong = loaded(SaidShape, each)
        faults += [replace(fault, path=(*path, index, *fault.path)) for fault in wrong]
        if shape is not None:
            found.append(ExpectedWords(shape, (*path, index)))
    return tuple(found), faults
