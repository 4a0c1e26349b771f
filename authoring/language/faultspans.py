"""What is wrong with a server, and from when to when: ``2m..12m: down``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from headrace.authoring.language.durations import NotADuration, not_a_time, seconds
from headrace.authoring.language.matchers import faults as faults_of_matchers
from headrace.authoring.language.timelines import type_fault
from headrace.authoring.playing.scenario import ServerOutage
from headrace.compiler.component.drafts import loaded
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import FailureClass
from headrace.compiler.schema.fields import AnyJson, Choice, Name
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text.diagnostics import Codes, Fault, Path, shown
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "not-a-fault": "What is wrong with a server, or with the process, is nothing that can be.",
}

DOWN = "down"
A_SPAN = "a span such as 2m..12m, or 5m.. without an end"
A_FAULT = (
    "down, slow with a duration (slow 2s), refuses or unanswered, of so many if wanted (refuses 1/3),"
    " refuses as a class (refuses as misconfigured), or an object with 'refuses'"
)
CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)

_REFUSES = re.compile(r"refuses(?: +([0-9]{1,6})/([0-9]{1,6}))?(?: +as +(\S+))?")
_UNANSWERED = re.compile(r"unanswered(?: +([0-9]{1,6})/([0-9]{1,6}))?")
_SLOW = re.compile(r"slow +(\S+)")


class RefusalShape(Record):
    """Which messages a server refuses, and how."""

    refuses: object = option(
        AnyJson(), "The messages, as `expect` would have one of them: a matcher, mostly."
    )
    as_: str = option(Choice(*CLASSES), "The class of the failure.", default="invalid")
    says: str | None = option(Name(), "In which words it fails.", default=None)


def outages(
    value: JsonValue, stage: Stage, *, is_shared: bool = False
) -> tuple[list[ServerOutage], list[Fault]]:
    """Return what is wrong with the other side of a component, and what is wrong with how it is written.

    ``is_shared``: outputs have the same other side, and what only they can meet is theirs alone.
    """
    if not isinstance(value, dict):
        return [], [type_fault(value, f"an object of spans, each {A_SPAN}", ())]
    found, faults = list[ServerOutage](), list[Fault]()
    for span, what in value.items():
        if stage == "input" and is_shared and what != DOWN:
            continue
        try:
            begins, ends = span_of(span)
            found.append(replace(_outage(what, stage, (span,)), begins=begins, ends=ends))
        except NotADuration:
            faults.append(fault_of_span(span, A_SPAN))
        except _Wrong as cause:
            faults += cause.faults
    return sorted(found, key=lambda each: each.begins), faults


class _Wrong(Exception):
    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


def span_of(text: str) -> tuple[float, float]:
    """Return from when to when a span is. Raises `NotADuration`: it is none."""
    begin, dots, end = text.partition("..")
    if not dots:
        raise NotADuration(text)
    begins, ends = seconds(begin.strip()), seconds(end.strip()) if end.strip() else math.inf
    if ends <= begins:
        raise NotADuration(text)
    return begins, ends


def fault_of_span(found: str, expected: str) -> Fault:
    """Return the fault of a key that does not say when."""
    said = f"expected {expected}, found {shown(found)}"
    return Fault("not-a-time", said, shown(found), expected, path=(found,), on_key=True)


def not_a_fault(found: JsonValue, expected: str, path: Path) -> Fault:
    """Return the fault of what is nothing that can be wrong."""
    said = f"expected {expected}, found {shown(found)}"
    return Fault("not-a-fault", said, shown(found), expected, path=path)


def _outage(what: JsonValue, stage: Stage, path: Path) -> ServerOutage:
    if what == DOWN:
        return ServerOutage(0, 0, "down")
    if stage == "input":
        raise _Wrong(not_a_fault(what, "down: an input is only told what arrives", path))
    if isinstance(what, dict):
        return _selective(what, path)
    text = what if isinstance(what, str) else ""
    if found := _SLOW.fullmatch(text):
        try:
            return ServerOutage(0, 0, "slow", seconds=seconds(found[1]))
        except NotADuration:
            raise _Wrong(replace(not_a_time(found[1]), path=path)) from None
    if found := _REFUSES.fullmatch(text):
        failure = None if found[3] is None else _class(found[3], path)
        refused, of = _share(found[1], found[2], what, path)
        return ServerOutage(0, 0, "refuses", refused=refused, of=of, failure=failure)
    if found := _UNANSWERED.fullmatch(text):
        refused, of = _share(found[1], found[2], what, path)
        return ServerOutage(0, 0, "unanswered", refused=refused, of=of)
    raise _Wrong(not_a_fault(what, A_FAULT, path))


def _share(some: str | None, of: str | None, what: JsonValue, path: Path) -> tuple[int, int]:
    """Return of how many batches how many; of each one that one, if nothing is said."""
    if some is None or of is None:
        return 1, 1
    if not 0 < int(some) <= int(of):
        raise _Wrong(not_a_fault(what, A_FAULT, path))
    return int(some), int(of)


def _class(word: str, path: Path) -> FailureClass:
    for each in CLASSES:
        if each == word:
            return each
    expected = one_of(CLASSES)
    fault = Fault("not-a-fault", f"there is no class '{word}'", shown(word), expected, path=path)
    raise _Wrong(fault.meaning(nearest(word, CLASSES)))


def _selective(what: dict[str, JsonValue], path: Path) -> ServerOutage:
    """Return that a server refuses some messages."""
    shape, _, faults = loaded(RefusalShape, what)
    found = [replace(each, path=(*path, *each.path)) for each in faults]
    found += _wrong_matchers(what, path)
    if shape is None or found:
        raise _Wrong(*found)
    return ServerOutage(
        0,
        0,
        "refuses",
        failure=_class(shape.as_, path),
        is_selective=True,
        like=what["refuses"],
        says=shape.says or "",
    )


def _wrong_matchers(what: dict[str, JsonValue], path: Path) -> Iterator[Fault]:
    for each in faults_of_matchers(what.get("refuses")):
        yield replace(each, path=(*path, "refuses", *each.path))
