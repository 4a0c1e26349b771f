"""What a config is built to, as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from headrace.authoring.explaining.explained import (
    ExplainedFailure,
    ExplainedOption,
    ExplainedPart,
    ExplainedPipeline,
    ExplainedPromise,
)
from headrace.authoring.explaining.inmemory import Amount
from headrace.compiler.errors import FailureClass
from headrace.compiler.text.diagnostics import printable

WIDTH = 110
"""Columns that a line may have; a word alone may be longer."""
LONGEST = 40
"""Characters of a value that are shown."""
LEFT_OUT = "* left out in the config"
_KEPT = "\xa0"
"""Stands for a blank at which no line is broken; `printable` leaves no other."""


def text_of(pipelines: Sequence[ExplainedPipeline], *, with_code: bool = False) -> str:
    """Return one block for each pipeline, with its generated loops if they are wanted."""
    blocks = ["\n".join(_block(each)) for each in pipelines]
    if with_code:
        blocks = [
            "\n\n".join([block, *_code(each)])
            for block, each in zip(blocks, pipelines, strict=True)
        ]
    return "\n\n".join(blocks)


def _block(pipeline: ExplainedPipeline) -> Iterator[str]:
    yield printable("   ".join(_title(pipeline)))
    parts = [*pipeline.parts()]
    names = max(len(each.called) for each in parts)
    kinds = max(len(each.kind) for each in parts)
    lines = max(len(str(each.place.line or "")) for each in parts)
    for part in parts:
        line = "" if part.place.line is None else f":{part.place.line}"
        head = f"  {part.called:{names}}  {part.kind:{kinds}}  {line:{lines + 1}}  "
        yield from _hanging(head, _said(part))
    footers = [*_footers(pipeline)]
    for label, clauses in footers:
        yield from _hanging(f"  {label:13}  ", [printable(clauses)])
    if any(each.is_default for part in parts for each in part.options):
        yield f"  {LEFT_OUT}"


def _title(pipeline: ExplainedPipeline) -> Iterator[str]:
    yield (
        f"pipeline '{pipeline.called}'"
        if pipeline.id
        else f"pipeline {pipeline.called}, without id"
    )
    yield str(pipeline.place)
    if pipeline.reads:
        yield f"reads {_quoted(pipeline.reads)}"
    if pipeline.read_by:
        yield f"read by {_quoted(pipeline.read_by)}"
    if pipeline.buckets:
        yield f"bucket {_quoted(pipeline.buckets)}"


def _said(part: ExplainedPart) -> Iterator[str]:
    """Yield what is said of a part, a line each."""
    options = [_option(each) for each in part.options]
    options += [f"connection '{each.name}' ({each.place})" for each in part.connections]
    if options:
        yield "   ".join(printable(each).replace(" ", _KEPT) for each in options)
    yield from map(printable, part.notes)
    said = {each.about: each.said for each in part.promises if _is_worth_saying(each)}
    full = [said.pop(about) for about in ("waits", "beyond") if about in said]
    yield from said.values()
    if full:
        yield "; ".join(full)
    yield from _failing(part.failures)


def _failing(failures: Sequence[ExplainedFailure]) -> Iterator[str]:
    """Yield the codes of each class that it fails with, those that no test has tried behind the others."""
    for failure in get_args(FailureClass):
        codes = {
            mark: ", ".join(
                code
                for row in failures
                if (row.class_, row.mark) == (failure, mark)
                for code in row.codes
            )
            for mark in ("tried", "documented")
        }
        if told := "; ".join(f"{said} ({mark})" for mark, said in codes.items() if said):
            yield f"{failure}: {told}"


def _is_worth_saying(promise: ExplainedPromise) -> bool:
    """Return whether a promise is told with its part: what a kill costs is told of the whole pipeline."""
    return promise.about != "kill" and (promise.about, promise.text) != ("twice", "nothing")


def _option(option: ExplainedOption) -> str:
    value = str(option.value).lower() if isinstance(option.value, bool) else str(option.value)
    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
    return f"{option.name} {shown or '(empty)'}{'*' * option.is_default}"


def _footers(pipeline: ExplainedPipeline) -> Iterator[tuple[str, str]]:
    held = pipeline.in_memory
    yield "acknowledges", "; ".join(pipeline.acknowledges)
    yield "kill -9 loses", _amounts(held.kill_loses, ", ")
    yield "waits at most", _amounts(held.waits, " + ")
    if pipeline.dead_letters is not None:
        yield "dead letters", pipeline.dead_letters
    yield "a restart", "; ".join(pipeline.restart)
    secrets = ", ".join(f"{each.name} ({each.option})" for each in pipeline.secrets)
    yield "secrets", secrets or "none"


def _amounts(amounts: Iterable[Amount], between: str) -> str:
    return between.join(map(str, amounts)) or "nothing"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _hanging(head: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that stand behind a head, those after the first below each other."""
    before, blank, room = head, " " * len(head), WIDTH - len(head)
    for line in lines:
        for wrapped in (
            textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False)
            if len(line) > room
            else filter(str.strip, (line,))
        ):
            yield f"{before}{wrapped}".rstrip().replace(_KEPT, " ")
            before = blank
    if before == head:
        yield head.rstrip()


def _code(pipeline: ExplainedPipeline) -> Iterator[str]:
    """Yield each generated loop, under what it does the work of; then each `when`, under whose it is."""
    for loop in pipeline.loops:
        first, last = loop.transforms[0], loop.transforms[-1]
        more = "" if first == last else f"..{last}"
        head = printable(f"# {pipeline.called} transforms[{first}{more}]")
        yield f"{head}\n{loop.source.rstrip()}"
    for each in pipeline.selections:
        head = printable(f"# {pipeline.called} {each.place} when")
        yield f"{head}\n{each.source.rstrip()}"
