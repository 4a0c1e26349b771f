"""From a config that was read to what is told of it. Nothing is opened, no secret is resolved."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig
from headrace.authoring.explaining.explained import (
    ExplainedConnection,
    ExplainedFailure,
    ExplainedOption,
    ExplainedPart,
    ExplainedPipeline,
    ExplainedPromise,
    ExplainedSecret,
    Place,
)
from headrace.authoring.explaining.inmemory import InMemory, in_memory
from headrace.authoring.explaining.loops import GeneratedCode, generated_code
from headrace.compiler.component.conditions import Condition
from headrace.compiler.component.durable import durable_of
from headrace.compiler.component.durableinput import DurableInput
from headrace.compiler.component.families import Component, Input, Output, Transform
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.promises import Promises, size
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.component.retry import retry_of
from headrace.compiler.config.program import Program
from headrace.compiler.config.showing import shown_config
from headrace.compiler.errors import HeadraceError
from headrace.compiler.schema.fields import BucketName, ConnectionName
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import Setting, settings_of, upstreams
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.diagnostics import path_text
from headrace.compiler.text.documents import Site
from headrace.compiler.text.suggest import meant_or_there

LONGEST_CONDITIONS = 300
"""Characters of the words for a list of conditions that are shown."""

Readers = list[tuple[str, Input]]
"""The inputs that read a pipeline, each with what its own is called."""


class PipelineNotThere(HeadraceError):
    """A config has no pipeline of that id; its text says what there is."""


def explained(
    loaded: LoadedConfig[ConfigFiles], ids: Sequence[str] = ()
) -> list[ExplainedPipeline]:
    """Return what a config is built to: the pipelines that are named, or all, in the order of the file.

    Raises:
        PipelineNotThere: nothing in it is called so.
        Refused: a pipeline cannot be built, with every reason.
    """
    program = loaded.program
    assert program is not None  # one that is refused is explained by what is wrong with it
    _look_for(ids, program)
    called = _called(program)
    generated = generated_code(program, called, base=loaded.base)
    pipelines = sorted(
        zip(program.pipelines, called, generated, strict=True), key=lambda each: each[0].site.at
    )
    readers: dict[str, Readers] = {}
    for config, name, _ in pipelines:
        for path, upstream in config.readings():
            readers.setdefault(upstream, []).append((name, config.inputs[int(path[1])]))
    return [
        _Explaining(loaded, config, name, code, readers.get(name, [])).pipeline()
        for config, name, code in pipelines
        if not ids or config.id in ids
    ]


def _look_for(ids: Iterable[str], program: Program) -> None:
    for id in ids:
        if id not in program.named:
            there = meant_or_there(id, program.named)
            raise PipelineNotThere(f"there is no pipeline '{id}' ({there})")


def _called(program: Program) -> list[str]:
    """Return the ids, and for those that have none where they stand: a generated one differs each time."""
    taken = {each.id for each in program.pipelines}
    called: list[str] = []
    for config in program.pipelines:
        name = config.id or path_text(config.site.called) or "pipeline"
        while config.id is None and name in taken:
            name += "'"
        called.append(name)
    return called


@dataclass(frozen=True)
class _Explaining:
    """One pipeline being explained."""

    loaded: LoadedConfig[ConfigFiles]
    config: PipelineConfig
    called: str
    code: GeneratedCode
    readers: Readers

    def pipeline(self) -> ExplainedPipeline:
        config, readers = self.config, self.readers
        held = in_memory(config, readers)
        buckets = {value for _, field, value in settings_of(config) if _names_bucket(field, value)}
        [shown] = shown_config([(self.called, config)], {})
        return ExplainedPipeline(
            id=config.id,
            called=self.called,
            place=_place(config.site),
            reads=tuple(dict.fromkeys(config.upstreams)),
            read_by=tuple(dict.fromkeys(id for id, _ in readers)),
            buckets=tuple(sorted(buckets)),
            inputs=tuple(self._parts("inputs", shown)),
            transforms=tuple(self._parts("transforms", shown)),
            outputs=tuple(self._parts("outputs", shown)),
            loops=tuple(self.code.loops),
            selections=tuple(self.code.selections),
            acknowledges=tuple(self._acknowledges()),
            in_memory=held,
            restart=tuple(_restart(config, held, sorted(buckets), self._durable())),
            secrets=tuple(dict.fromkeys(self._secrets())),
            dead_letters=_dead_letters(config),
        )

    def _durable(self) -> frozenset[str]:
        """Return the names of the buckets that outlast a restart."""
        program = self.loaded.program
        declared = {} if program is None else program.buckets
        return frozenset(name for name, each in declared.items() if each.durable)

    def _parts(self, family: str, shown: dict[str, Any]) -> Iterator[ExplainedPart]:
        """Yield the components of a family; ``shown`` is the pipeline without its credentials."""
        components: Sequence[Component] = getattr(self.config, family)
        for index, component in enumerate(components):
            site = self.config.site.inside(family, index)
            yield ExplainedPart(
                called=f"{family}[{index}]",
                kind=component.kind,
                place=_place(site),
                options=tuple(_options(component, shown[family][index])),
                connections=tuple(self._connections(component)),
                promises=tuple(_promises(component, is_kept=self.config.letters is not None)),
                failures=tuple(_failures(component)),
                notes=tuple(self._notes(component, index)),
                upstream=next((name for _, name in upstreams(settings_of(component))), None),
            )

    def _connections(self, component: Component) -> Iterator[ExplainedConnection]:
        for _, field, name in settings_of(component):
            if isinstance(field, ConnectionName):
                filed_at = self.loaded.filed_at.get(name, "")
                yield ExplainedConnection(name, field.connection_kind, filed_at)

    def _notes(self, component: Component, index: int) -> Iterator[str]:
        yield from _conditions(component)
        if isinstance(component, Transform) and (waits := _waits(component)):
            yield f"while the server is away: {waits[1]}"
        if isinstance(component, Output) and self.config.letters is not None:
            yield _telling_apart(component)
        if (
            isinstance(component, DurableInput)
            and component.promised().waiting is None
            and (kept := durable_of(component.durable)) is not None
        ):
            yield f"on the disk: at most {size(kept.max_bytes)}"
        if isinstance(component, Input) and component.buffer is not None:
            yield _holds(component.buffer.holder())
        if isinstance(component, Transform):
            yield from self._loop_of(index)
            if (holder := component.holder()) is not None:
                yield _holds(holder)
            if component.acts:
                yield component.acts

    def _loop_of(self, index: int) -> Iterator[str]:
        for loop in self.code.loops:
            first, *others = loop.transforms
            if index in others:
                yield f"in the loop of transforms[{first}]"
            elif index == first:
                yield "one generated loop"

    def _acknowledges(self) -> Iterator[str]:
        beyond = "".join(
            f" and every output of '{id}'"
            if reader.is_acknowledged_late
            else f" and is in the inbox of '{id}'"
            for id, reader in dict(self.readers).items()
        )
        for index, component in enumerate(self.config.inputs):
            promised = component.promised()
            if component.is_durable:
                who = f"{component.kind}, when it is on the disk"
                if component.unacknowledged:
                    who = f"nobody ({component.unacknowledged}), and is on the disk at once"
                said = f"{who}; kept there until all of it has left every output{beyond}"
            elif component.is_acknowledged_late:
                said = f"{component.kind}, when all of a message has left every output{beyond}"
            elif not promised.is_acknowledged:
                nothing = f"{component.kind}{_plain(promised.when)} has nothing to acknowledge"
                said = f"nobody: {component.unacknowledged or nothing}"
            else:
                said = f"{component.kind}, as it arrives"
            yield said if len(self.config.inputs) == 1 else f"inputs[{index}]: {said}"

    def _secrets(self) -> Iterator[ExplainedSecret]:
        yield from _secrets(settings_of(self.config), "")
        for name in sorted(self.config.connections):
            filed = self.loaded.connections[name]
            yield from _secrets(settings_of(filed), f"connection '{name}': ")


def _place(site: Site) -> Place:
    file = None if site.document is None else site.document.file
    line, column = site.position() or (None, None)
    return Place(file, line, column)


def _names_bucket(field: object, value: object) -> bool:
    return isinstance(field, BucketName) and value is not None


def _options(component: Component, shown: dict[str, object]) -> Iterator[ExplainedOption]:
    """Yield what its options hold: of objects their tags, of lists and of secrets nothing."""
    for wire, known in component.options().items():
        value = getattr(component, known.attribute)
        if isinstance(known.field, ConnectionName) or isinstance(value, Secret):
            continue
        if isinstance(value, Tagged) and value.tag:
            value = value.tag
        elif not isinstance(value, Record):
            value = shown.get(wire, value)
        if isinstance(value, str | int | float):
            yield ExplainedOption(wire, value, wire not in component.given)


def _conditions(component: Component) -> Iterator[str]:
    """Yield what each of its lists of conditions asks: ``when 'temp' at_least 80 and 'state' exists``."""
    for wire, known in component.options().items():
        listed = getattr(component, known.attribute)
        if isinstance(listed, tuple) and listed and isinstance(listed[0], Condition):
            said = " and ".join(each.said for each in listed)
            yield f"{wire} {said if len(said) <= LONGEST_CONDITIONS else said[:LONGEST_CONDITIONS] + '...'}"


_LOST = re.compile(
    r"(?P<verb>is|are) lost( and counted| whole)?(, and never (sent|written) later)?"
)
_KEPT = {"is": "becomes a dead letter", "are": "become dead letters"}


def _dead_letters(config: PipelineConfig) -> str | None:
    """Return how much of what cannot be done is kept, and what happens beyond."""
    if config.letters is None:
        return None
    return (
        f"up to {size(config.letters.max_bytes)}; beyond that an output waits that has more, and of inputs"
        " and transforms the oldest go"
    )


def _promises(component: Component, *, is_kept: bool) -> Iterator[ExplainedPromise]:
    rows: list[Promises] = []
    if isinstance(component, Input):
        promised = component.promised()
        rows += [promised] if promised.waiting is None else [promised, promised.waiting]
    elif isinstance(component, Output):
        rows.append(component.promised())
    waits = _waits(component)
    for row in rows:
        for name, about, text in row.named(component):
            if waits and about == "away":
                name, text = waits
            elif waits and about == "twice" and not row.is_repeatable:
                text = "what was cut off after it was sent"
            elif about == "away" and is_kept:
                text = _LOST.sub(lambda found: _KEPT[found["verb"]], text)
            yield ExplainedPromise(name, about, _plain(text), _plain(row.said(about, text)))


_FULL = {
    "wait": "beyond that what comes waits, and the inputs with it",
    "drop_oldest": "beyond that the oldest is dropped and counted",
}
"""What a queue does with more than it may keep, by its `when_full`."""


def _waits(component: Component) -> tuple[str, str] | None:
    """Return the promise of what a component does in an outage, if it bridges outages, and its text."""
    if isinstance(component, Output):
        retry = component.retrying()
    else:
        retry = retry_of(getattr(component, "retry", None))
    if retry is None:
        return None
    lasting = "for ever" if retry.seconds is None else f"for up to {retry.seconds:,} s"
    if isinstance(component, QueuedOutput) and (queue := component.queueing) is not None:
        most = f"at most {size(queue.max_bytes)}, {_FULL[queue.when_full]}"
        said = f"is on the disk and is tried again, in order, {lasting}; {most}"
        return "delivery.queue.waits", said
    return "delivery.retry.waits", f"waits and is tried again, in order, {lasting}"


def _telling_apart(output: Output) -> str:
    """Return whether single messages of a batch become dead letters, and when."""
    if output.bisection.how == "never":
        return "a batch that it refuses is a dead letter as a whole"
    said = _plain(output.bisection.says)
    return f"of a batch that it refuses the messages at fault are dead letters ({said})"


def _failures(component: Component) -> Iterator[ExplainedFailure]:
    for name, row in component.failure_classes.named(component):
        codes = tuple(map(str, row.codes))
        text, source = _plain(row.what), row.source or None
        yield ExplainedFailure(name, row.failure, codes, text, row.mark, source)


def _plain(markdown: str) -> str:
    return markdown.replace("**", "").replace("`", "'")


def _holds(holder: Holder) -> str:
    """Return how many messages something holds, and until when."""
    most = "any number of messages" if holder.most is None else f"up to {holder.most:,} messages"
    ends = [] if holder.seconds is None else [f"{holder.seconds:,} s from the first"]
    ends += ["until its gate opens"] if holder.has_gate else []
    return f"holds {', '.join([most, *ends])}"


def _restart(
    config: PipelineConfig, held: InMemory, buckets: Sequence[str], durable: Collection[str]
) -> Iterator[str]:
    """Yield what a stop in order and the next start do."""
    if held.let_go_early:
        amounts = " and ".join(
            str(each).replace("messages", "held messages") for each in held.let_go_early
        )
        yield f"lets {amounts} go early"
    emptied = [f"'{each}'" for each in buckets if each not in durable]
    kept = [f"'{each}'" for each in buckets if each in durable]
    if emptied:
        yield f"empties bucket {', '.join(emptied)}"
    if kept:
        yield f"keeps bucket {', '.join(kept)}; what comes again is remembered again, and counted again"
    if not buckets:
        yield "keeps no bucket"
    connected = [
        (f"inputs[{index}]", component.is_kept())
        for index, component in enumerate(config.inputs)
        if component.fed_by == "server"
    ]
    if kept := [name for name, is_kept in connected if is_kept]:
        yield f"goes on where {', '.join(kept)} had come to"
    if missing := [name for name, is_kept in connected if not is_kept]:
        yield f"misses what is sent meanwhile to {', '.join(missing)}"


def _secrets(settings: Iterable[Setting], whose: str) -> Iterator[ExplainedSecret]:
    for path, _, value in settings:
        for name in value.names() if isinstance(value, Secret) else ():
            yield ExplainedSecret(name, f"{whose}{path_text(path)}")
