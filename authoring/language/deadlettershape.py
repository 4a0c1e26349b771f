"""Dead letters that a test expects: of what, why, and with what in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headrace.authoring.language.faultspans import CLASSES
from headrace.authoring.language.matchers import faults as faults_of_matchers
from headrace.authoring.language.timelines import type_fault
from headrace.compiler.component.drafts import loaded
from headrace.compiler.delivery import JsonValue
from headrace.compiler.runtime.monitoring.letterfigures import LETTER_STAGES
from headrace.compiler.schema.fields import AnyJson, Choice, Integer, Name, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text.diagnostics import Fault, Path


class DeadLetterShape(Record):
    """A dead letter that is expected; what is not said of it may be whatever it is."""

    at: str = option(
        Name(), "The component that it failed on: `PIPELINE.outputs[N]`.", elsewhere="where place"
    )
    says: str = option(
        Text(), "A part of what was said.", default="", elsewhere="message text error"
    )
    class_: str | None = option(Choice(*CLASSES), "The class of the failure.", default=None)
    stage: str | None = option(
        Choice(*LETTER_STAGES),
        "The stage; `process` is that of what has ended the process again and again.",
        default=None,
    )
    messages: Any = option(
        AnyJson(),
        "The messages in it, as they came to the component: a list, or one alone.",
        default=None,
        elsewhere="batch content",
    )
    payload: str | None = option(
        Text(), "What an input could make no messages of, as text.", default=None, elsewhere="raw"
    )
    times: int | None = option(
        Integer(min=1), "How often. Left out: at least once.", default=None, elsewhere="count"
    )


@dataclass(frozen=True, slots=True)
class ExpectedLetter:
    """What is expected, and where that is written."""

    letter: DeadLetterShape
    messages: JsonValue
    """As they are written; None where nothing is said of them."""
    path: Path


def expected_letters(
    value: JsonValue, path: Path
) -> tuple[tuple[ExpectedLetter, ...], list[Fault]]:
    """Return a list of dead letters that are expected, and what is wrong with how it is written."""
    if not isinstance(value, list):
        expected = "a list of objects with 'at', and more if wanted, or [] for none"
        return (), [type_fault(value, expected, path)]
    found, faults = list[ExpectedLetter](), list[Fault]()
    for index, each in enumerate(value):
        shape, _, wrong = loaded(DeadLetterShape, each)
        faults += [replace(fault, path=(*path, index, *fault.path)) for fault in wrong]
        if shape is not None:
            messages = each.get("messages") if isinstance(each, dict) else None
            found.append(ExpectedLetter(shape, messages, (*path, index)))
            faults += [
                replace(fault, path=(*path, index, "messages", *fault.path))
                for fault in faults_of_matchers(messages)
            ]
    return tuple(found), faults
