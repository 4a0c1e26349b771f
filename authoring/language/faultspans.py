"""What is wrong with a server, and from when to when: ``2m..12m: down``."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from headrace.authoring.language.durations import NotADuration, not_a_time, seconds
from headrace.authoring.language.timelines import type_fault
from headrace.authoring.playing.scenario import ServerOutage
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Codes, Fault, Path, shown

CODES: Codes = {
    "not-a-fault": "What is wrong with a server is nothing that can be.",
    "not-known-yet": "A test names something that headrace does not have yet.",
}

A_SPAN = "a span such as 2m..12m, or 5m.. without an end"
A_FAULT = "down, slow with a duration (slow 2s), or refuses, of so many if wanted (refuses 1/3)"

_REFUSES = re.compile(r"refuses(?: +([0-9]{1,6})/([0-9]{1,6}))?(?P<class> +as +\S+)?")
_SLOW = re.compile(r"slow +(\S+)")


def outages(value: JsonValue, stage: Stage) -> tuple[list[ServerOutage], list[Fault]]:
    """Return what is wrong with the other side of a component, and what is wrong with how it is written."""
    if not isinstance(value, dict):
        return [], [type_fault(value, f"an object of spans, each {A_SPAN}", ())]
    found, faults = list[ServerOutage](), list[Fault]()
    for span, what in value.items():
        try:
            begins, ends = _span(span)
            found.append(replace(_outage(what, stage, (span,)), begins=begins, ends=ends))
        except NotADuration:
            said = f"expected {A_SPAN}, found {shown(span)}"
            fault = Fault("not-a-time", said, shown(span), A_SPAN, path=(span,), on_key=True)
            faults.append(fault)
        except _Wrong as cause:
            faults.append(cause.fault)
    return sorted(found, key=lambda each: each.begins), faults


class _Wrong(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _span(text: str) -> tuple[float, float]:
    begin, dots, end = text.partition("..")
    if not dots:
        raise NotADuration(text)
    begins, ends = seconds(begin.strip()), seconds(end.strip()) if end.strip() else math.inf
    if ends <= begins:
        raise NotADuration(text)
    return begins, ends


def _outage(what: JsonValue, stage: Stage, path: Path) -> ServerOutage:
    if what == "down":
        return ServerOutage(0, 0, "down")
    text = what if isinstance(what, str) else ""
    if stage == "input" and (_SLOW.fullmatch(text) or _REFUSES.fullmatch(text)):
        raise _Wrong(_fault(what, "down: an input is only told what arrives", path))
    if found := _SLOW.fullmatch(text):
        try:
            return ServerOutage(0, 0, "slow", seconds=seconds(found[1]))
        except NotADuration:
            raise _Wrong(replace(not_a_time(found[1]), path=path)) from None
    if found := _REFUSES.fullmatch(text):
        if found["class"]:
            raise _Wrong(
                Fault(
                    "not-known-yet",
                    "classes of refusals are not known yet",
                    text,
                    A_FAULT,
                    path=path,
                )
            )
        refused, of = (int(found[1]), int(found[2])) if found[1] else (1, 1)
        if 0 < refused <= of:
            return ServerOutage(0, 0, "refuses", refused=refused, of=of)
    raise _Wrong(_fault(what, A_FAULT, path))


def _fault(what: JsonValue, expected: str, path: Path) -> Fault:
    return Fault(
        "not-a-fault", f"expected {expected}, found {shown(what)}", shown(what), expected, path=path
    )
