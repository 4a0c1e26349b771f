"""Remarks: what a config may say, and yet is probably not meant. Warnings, never refusals.

Each is certain: it follows from the config alone, whatever messages come. But for one: whether a buffer
starves a broker depends on how many messages come while it holds them, and we tell of it beforehand.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from headrace.compiler.component.conditions import narrowed, use_where
from headrace.compiler.component.drafts import Draft, DraftComponent
from headrace.compiler.component.envelopes import SHARED_METADATA
from headrace.compiler.component.families import Input, Output, Transform
from headrace.compiler.component.fieldflow import ANYTHING, FieldUse, Passing, Shape, merged
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import BATCHES_UNDER_WAY
from headrace.compiler.schema.fields import SecretText, Strict, Text
from headrace.compiler.schema.records import dumped
from headrace.compiler.schema.structures import Setting, upstreams
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.counting import counted
from headrace.compiler.text.diagnostics import Codes, Diagnostic, Fault, Path, Severity, shown
from headrace.compiler.text.suggest import nearest
from headrace.compiler.texttemplates import TextTemplate

CODES: Codes = {
    "fails-on-null": "A component fails on null where an earlier one may write null.",
    "literal-reference": "A plain setting contains '${', which only secrets resolve.",
    "literal-template": "A name or a path contains a template, which nothing fills in.",
    "literal-variable": "A secret contains what looks like '$NAME', a reference without its braces.",
    "never-reached": "A component can never see a message.",
    "outage-fills": "While a server is away, all that an output is handed becomes dead letters.",
    "others-wait": "While an output waits for the end of an outage, the other outputs wait as well.",
    "not-handed-on": "A component reads a path that an earlier one does not hand on.",
}

_MOST_LISTED = 50
"""Fields that are listed as handed on, where one is missed."""


def remarks(drafts: Sequence[Draft], order: Sequence[int]) -> Iterator[Diagnostic]:
    """Yield the remarks on pipelines that run together, ``order`` being that of dependency."""
    ends: dict[str, Passing] = {}
    forgetful = set[str]()
    for draft in (drafts[place] for place in order):
        for part in draft.parts():
            yield from literal_references(part)
        yield from _waited_for_in_vain(draft, forgetful)
        end = yield from _along(draft, ends)
        yield from _starved(draft)
        yield from _kept_waiting(draft)
        yield from _filled_by_outages(draft)
        if draft.id is not None:
            ends.setdefault(draft.id, end)


def literal_references(part: DraftComponent) -> Iterator[Diagnostic]:
    """Yield the settings of a component that look as if something else were put in their place."""
    return map(part.site.diagnose, taken_literally(part.settings()))


def taken_literally(found: Iterable[Setting]) -> Iterator[Fault]:
    """Yield the settings that look as if something else were put in their place, and are not."""
    for path, field, value in found:
        yield from (replace(fault, path=path) for fault in _taken(field, value))


def _taken(field: Strict, value: Any) -> Iterator[Fault]:
    """Yield why one setting looks as if something else were put in its place."""
    if isinstance(field, SecretText):
        if value.lacks_braces:  # it may be a password: nothing of it shows
            yield Fault(
                "literal-variable",
                "what looks like $NAME is taken as it stands here: references have braces",
                expected="${NAME}",
                suggestion="write ${NAME} to refer to a variable, with its name inside",
                severity=Severity.WARNING,
                is_confidential=True,
            )
    elif isinstance(field, Text) and field.is_literal:
        text = dumped(value)
        if "${" in (text if field.fixed is None else text.replace("${!", "")):
            yield Fault(
                "literal-reference",
                "'${' is taken as it stands here: only secrets resolve references",
                found=shown(str(value)),  # of a url, without its user info
                severity=Severity.WARNING,
            )
        # The text is the same for every message, and looks as if it were not.
        for said, meant, remedy in () if field.fixed is None else field.fixed.taken(str(value)):
            yield Fault(
                "literal-template",
                f"'{said}' is taken as it stands here: nothing puts {meant} in its place",
                found=shown(str(value)),
                suggestion=remedy,
                severity=Severity.WARNING,
            )


def _starved(draft: Draft) -> Iterator[Diagnostic]:
    """Yield the inputs whose broker waits for what is held, each with the first that holds it."""
    for part in draft.inputs:
        if isinstance(part.built, Input):
            found = map(part.built.starved_by, _holders(part.built, draft.transforms))
            yield from islice((part.site.diagnose(each) for each in found if each is not None), 1)


def _waited_for_in_vain(draft: Draft, forgetful: set[str]) -> Iterator[Diagnostic]:
    """Yield the inputs that have an upstream wait of which nothing comes again anyway.

    ``forgetful`` are the pipelines before of which nothing does: this one may become one of them.
    """
    comes_again = False
    for part in draft.inputs:
        if not isinstance(part.built, Input):
            comes_again = True  # who knows
            continue
        read = [name for _, name in upstreams(part.settings())]
        is_late = part.built.is_acknowledged_late
        if is_late and (name := next((each for each in read if each in forgetful), None)):
            fault = Fault(
                "nothing-to-acknowledge",
                f"no input of '{name}' is durable or acknowledges on_delivery, so nothing comes again that"
                " it waits for here",
                '"on_delivery"',
                f"'durable' on the inputs of '{name}', or no 'upstream_ack'",
                path=("upstream_ack",),
                severity=Severity.WARNING,
            )
            yield part.site.diagnose(fault)
        else:
            comes_again |= part.built.is_durable or is_late
    if draft.id is not None and not comes_again:
        forgetful.add(draft.id)


def _kept_waiting(draft: Draft) -> Iterator[Diagnostic]:
    """Yield the outputs that have others wait for them in an outage."""
    if len(draft.outputs) < 2:
        return
    for part in draft.outputs:
        output = part.built
        # One that hands over parts has others wait for what it may hold, whatever its `retry` says.
        if not isinstance(output, Output) or output.is_queued or output.leaves_parts:
            continue
        if output.retrying() is not None:
            others = counted(len(draft.outputs) - 1, "other output")
            queue = "'queue', or " if isinstance(output, QueuedOutput) else ""
            fault = Fault(
                "others-wait",
                f"in an outage {others} of this pipeline will wait as well, as soon as an input has"
                f" {BATCHES_UNDER_WAY} batches on their way",
                expected=f"{queue}an output alone in its pipeline",
                suggestion=f"give it {queue}a pipeline and an input of its own where others must not wait",
                path=("retry",),
                severity=Severity.WARNING,
            )
            yield part.site.diagnose(fault)


def _filled_by_outages(draft: Draft) -> Iterator[Diagnostic]:
    """Yield that an outage fills the dead letters, if all that may have one give up at once."""
    if draft.dead_letters is None:
        return
    outputs = [part.built for part in draft.outputs]
    away = [each for each in outputs if isinstance(each, QueuedOutput)]
    give_up = (each.retrying() is None and not each.leaves_parts for each in away)
    if away and None not in outputs and all(give_up):
        fault = Fault(
            "outage-fills",
            "no output has 'retry', so while a server is away all that comes becomes dead letters",
            expected="'retry' or 'queue' on the outputs that write to a server",
            path=("dead_letters",),
            severity=Severity.WARNING,
            on_key=True,
        )
        yield draft.site.diagnose(fault)


def _holders(input: Input, transforms: Iterable[DraftComponent]) -> Iterator[Holder]:
    """Yield what holds messages that an input hands on, as many as came in.

    Who may do anything may also make many messages of one, and what a buffer behind it has gathered
    says nothing about how many have come.
    """
    held = [(None if input.buffer is None else input.buffer.holder(), "its buffer")]
    for part in transforms:
        if not isinstance(part.built, Transform) or not part.built.field_use().is_known:
            break
        if part.built.multiplies:
            break
        held.append((part.built.holder(), str(part)))
    for holder, called in held:
        if holder is not None and not holder.is_brief:
            yield replace(holder, called=called)


def _along(draft: Draft, ends: Mapping[str, Passing]) -> Generator[Diagnostic, None, Passing]:
    """Yield what can be said from its inputs to its outputs; return what leaves the last transform."""
    arriving = []
    for part in draft.inputs:
        passing = _handed(part, ends)
        yield from _missing_fields(part, _wanted(part), passing)
        arriving.append(passing := _arriving(part, passing))
        if passing.stopped:
            yield _never_reached(part, passing.stopped)
    passing = replace(merged(arriving), key=None if draft.state is None else draft.state.key)
    is_told = passing.stopped is not None  # that nothing comes so far: once is enough
    for index, part in enumerate((*draft.transforms, *draft.outputs)):
        if passing.stopped is None:
            yield from _missing_fields(part, _wanted(part), passing)
            taken = _taken_of(part, passing)
            if taken.stopped is not None:
                yield _never_reached(part, taken.stopped)
                continue
            use = part.built.field_use() if part.built is not None else FieldUse.unknown()
            yield from _missing_fields(part, use, taken)
            yield from _fails_on_null(part, passing, is_kept=draft.dead_letters is not None)
            if isinstance(part.built, Transform):
                yield from map(part.site.diagnose, part.built.oddities(passing))
        elif not is_told:
            is_told = True
            yield _never_reached(part, passing.stopped)
        if index < len(draft.transforms) and passing.stopped is None:
            passing = (
                part.built.passes(passing.seen_by(str(part)))
                if isinstance(part.built, Transform)
                else Passing(key=passing.key)  # of what could not be read nothing is known
            )
    return passing


def _wanted(part: DraftComponent) -> FieldUse:
    """Return which fields are looked at before a component takes a message."""
    return use_where(() if part.built is None else part.built.wanted)


def _taken_of(part: DraftComponent, passing: Passing) -> Passing:
    """Return what is known of the messages that a component takes of those that come to it."""
    wanted = () if part.built is None else part.built.wanted
    return narrowed(wanted, passing.seen_by(f"'when' of {part}")) if wanted else passing


def _read(part: DraftComponent) -> list[str]:
    """Return the pipelines whose messages come to an input."""
    if not isinstance(part.built, Input) or part.built.fed_by != "pipeline":
        return []
    return [upstream for _, upstream in upstreams(part.settings())]


def _handed(part: DraftComponent, ends: Mapping[str, Passing]) -> Passing:
    """Return what is known of the batches that come to one input."""
    if not isinstance(part.built, Input):
        return Passing()
    if read := _read(part):
        met = merged(ends.get(upstream, Passing()) for upstream in read)
        stopped = f"nothing leaves pipeline '{read[0]}'" if met.stopped else None
        passing = Passing(met.fields, met.largest, values=met.values, stopped=stopped)
        return _blamed_on(f"pipeline '{read[0]}'", passing)
    known = part.built.hands_on()
    fields = ANYTHING if known is None else Shape.of(known, str(part))
    return Passing(fields, None if part.built.is_batching() else 1)


def _blamed_on(who: str, passing: Passing) -> Passing:
    """Return the same where somebody has seen to all that is known: whoever did is in another pipeline."""
    values = {
        path: tuple((who, values) for _, values in told) for path, told in passing.values.items()
    }
    return replace(passing, fields=passing.fields.blamed_on((who,)), values=values)


def _arriving(part: DraftComponent, passing: Passing) -> Passing:
    """Return what is known of the batches of one input: what it takes, in its envelope and buffered."""
    if not isinstance(part.built, Input):
        return passing
    who, is_read = str(part), bool(_read(part))
    passing = _taken_of(part, passing)
    passing = (_blamed_on(who, passing) if is_read else passing).seen_by(who)
    if part.built.envelope is not None:
        about = Shape.of({**SHARED_METADATA, **part.built.attaches}, who)
        fields = part.built.envelope.enclose(passing.fields, about, is_added=is_read)
        passing = replace(passing, fields=fields, values={})
    return passing if part.built.buffer is None else passing.at_most(None)


def _missing_fields(part: DraftComponent, use: FieldUse, passing: Passing) -> Iterator[Diagnostic]:
    """Yield what a component reads and cannot find."""
    key = [passing.key] if use.by_key and passing.key is not None else []
    missing = {path: passing.missing(path) for path in sorted(use.asks.union(key))}
    lost = {path: who for path, who in missing.items() if who is not None}
    known = [] if passing.fields.is_open else [*islice(passing.fields.listed(), _MOST_LISTED)]
    # Where in the component each of them is named first.
    spelt: dict[str, Path] = {}
    for where, _, value in part.settings() if lost else ():
        for path in value.paths if isinstance(value, TextTemplate) else (value,):
            if isinstance(path, str) and path in lost:
                spelt.setdefault(path, where)
    for path, who in islice(lost.items(), FAULTS):
        # It is about the component, and shown where that spells the field.
        fault = Fault(
            "not-handed-on",
            f"reads '{path}', which {' and '.join(who)} {'does' if len(who) == 1 else 'do'} not hand on",
            found=shown(path),
            expected="one of " + ", ".join(known) if known else None,
            severity=Severity.WARNING,
        ).meaning(nearest(path, known))
        told = part.site.inside(*spelt.get(path, ())).diagnose(fault)
        yield replace(told, path=part.site.diagnose(fault).path)


def _fails_on_null(
    part: DraftComponent, passing: Passing, *, is_kept: bool
) -> Iterator[Diagnostic]:
    """Yield the fields that an earlier component may write as null, and that must not be null here."""
    built = part.built
    if not passing.nulls or not isinstance(built, Transform):
        return
    told = (each for each in built.demands() if each.path in passing.nulls)
    skips = (built.failing_alone() if is_kept else built).skips_failing
    costs = "leaves the message out" if skips else "fails the batch"
    for each in islice(told, FAULTS):
        fault = Fault(
            "fails-on-null",
            f"this {costs} where '{each.path}' is null, and {passing.nulls[each.path]} writes null"
            " for what is not remembered",
            found=shown(each.path),
            suggestion=f"{each.remedy}, or to skip where it is recalled",
            path=each.place,
            severity=Severity.WARNING,
        )
        yield part.site.diagnose(fault)


def _never_reached(part: DraftComponent, why: str) -> Diagnostic:
    fault = Fault("never-reached", f"no message ever comes here: {why}", severity=Severity.WARNING)
    return part.site.diagnose(fault)
