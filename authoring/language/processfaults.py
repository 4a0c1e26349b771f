"""When the process is killed, and when the disk of its store is full: ``90s: killed``, ``2m..5m: full``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from headrace.authoring.language.durations import NotADuration, seconds
from headrace.authoring.language.faultspans import (
    A_SPAN,
    fault_of_span,
    not_a_fault,
    span_of,
)
from headrace.authoring.language.timelines import type_fault
from headrace.authoring.playing.scenario import ProcessKill
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Fault, Path

A_KILL_AT = f"a moment such as 90s, or {A_SPAN}"
A_KILL = "killed, or killed before commit 1, or killed after commit 1"
FULL = "full"

_KILLED = re.compile(r"killed(?: +(before|after) +commit +([1-9][0-9]{0,5}))?")


PlacedKill = tuple[ProcessKill, Path]
"""A kill, and where it is written."""


def kills(value: JsonValue) -> tuple[list[PlacedKill], list[Fault]]:
    """Return when the process is killed, in the order of time, and what is wrong with how it is written."""
    if not isinstance(value, dict):
        return [], [type_fault(value, f"an object of moments, each {A_KILL_AT}", ())]
    placed, faults = list[PlacedKill](), list[Fault]()
    for when, what in value.items():
        try:
            at, until = _when(when)
        except NotADuration:
            faults.append(fault_of_span(when, A_KILL_AT))
            continue
        some = what if isinstance(what, list) else [what]
        for index, each in enumerate(some):
            path = (when, index) if isinstance(what, list) else (when,)
            found = _KILLED.fullmatch(each) if isinstance(each, str) else None
            if found is None:
                faults.append(not_a_fault(each, A_KILL, path))
            else:
                commit = int(found[2] or 0)
                placed.append((ProcessKill(at, until, commit, found[1] == "after"), path))
    placed.sort(key=lambda each: each[0].at)
    faults += _overlapping(placed)
    return placed, faults


def _when(text: str) -> tuple[float, float]:
    if ".." in text:
        return span_of(text)
    at = seconds(text)
    return at, at


def _overlapping(placed: list[PlacedKill]) -> Iterator[Fault]:
    """Yield what is wrong with kills at a time at which there is no process."""
    down_until = -math.inf
    for kill, path in placed:
        if kill.commit:
            continue
        if kill.at < down_until:
            said = "the process is killed already, and does not run at this moment"
            expected = "a moment at which it runs"
            yield Fault("conflict", said, str(path[0]), expected, path=path[:1], on_key=True)
        down_until = max(down_until, kill.until)


def is_down(kills: Iterable[ProcessKill], at: float) -> bool:
    """Return whether there is no process at a moment, as far as the moments of its kills tell."""
    # At the end there is none that was killed for good.
    return any(
        not each.commit and each.at <= at and (at < each.until or each.until == math.inf)
        for each in kills
    )


def full_spans(value: JsonValue) -> tuple[list[tuple[float, float]], list[Fault]]:
    """Return from when to when the disk is full, and what is wrong with how that is written."""
    if not isinstance(value, dict):
        return [], [type_fault(value, f"an object of spans, each {A_SPAN}", ())]
    spans, faults = list[tuple[float, float]](), list[Fault]()
    for span, what in value.items():
        try:
            spans.append(span_of(span))
        except NotADuration:
            faults.append(fault_of_span(span, A_SPAN))
        if what != FULL:
            faults.append(not_a_fault(what, FULL, (span,)))
    return spans, faults
