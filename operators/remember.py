"""The `remember` transform: writes values of messages into the bucket of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

from headrace.compiler.buckets import Bucket
from headrace.compiler.code import Code, GiveUp, subscripts
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, PacedStep, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import (
    Condition,
    all_counted,
    all_hold,
    outcomes,
    where_all_hold,
)
from headrace.compiler.component.failingmessages import NEVER_FAILS
from headrace.compiler.component.families import Fusible, Origins
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import Batch, JsonValue, is_large, parts
from headrace.compiler.dottedpaths import MISSING
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.largejson import LargeList
from headrace.compiler.schema.fields import MessageField, Name
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault, repeated
from headrace.operators.statekey import MessageKey

Assigned = dict[str, JsonValue]
Writes = dict[str, Assigned]
"""What a batch writes: key to name to value."""

NOT_AN_OBJECT = "remembered nothing of a message that is not an object"


class Remembered(Record):
    """One value to keep."""

    field: str = option(
        MessageField(),
        "Field to keep the value of, null included. Where it is missing nothing is.",
        elsewhere="column from key path source",
    )
    as_: str = option(
        Name(),
        "Name to keep it under; a dot in it means nothing.",
        elsewhere="alias into name output target to",
    )


class Remember(Fusible, kind="remember", listed=6, elsewhere="cache put save store"):
    """Write values of messages into the pipeline's bucket, and hand on all messages unchanged.

    They are filed under the key of their message: the value of the field that `state.key` of the
    pipeline names, a number or boolean as JSON writes it; without `state.key` they concern the
    bucket as a whole. Other names under that key stay as they are. What a batch writes is there all
    at once, when its last message has been looked at; of several messages with one key the last one
    counts. It comes to the same as one message after the other, each in a batch of its own, also where
    the bucket is full and keys have to go. Of a batch of more than 2,048 messages some hundred keys are
    written at a time, and others have their turn in between.

    Nothing is remembered of a message without a key (the field is missing, null, a list or an
    object) or of one that is no object; either is warned about once.
    """

    lacks: ClassVar = NEVER_FAILS
    remembers: ClassVar[bool] = True

    remember: tuple[Remembered, ...] = option(
        ListOf(RecordOf(Remembered), at_least=1, noun="value"),
        "What to keep.",
        elsewhere="fields store values",
    )
    when: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), noun="condition"),
        "Conditions that all have to hold for a message; without any, every message counts. A field "
        "that is missing or of another type does not match.",
        default=(),
        elsewhere="condition conditions if where",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse two values under one name."""
        return repeated((each.as_, ("remember", n, "as")) for n, each in enumerate(self.remember))

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Refuse to remember where there is no bucket."""
        if not context.has_state:
            yield no_state("'remember'")

    def field_use(self) -> FieldUse:
        """It reads what it keeps, what its conditions look at and the key, and changes nothing."""
        asked = [path for condition in self.when for path in condition.reads]
        kept = [each.field for each in self.remember]
        return FieldUse.of(reads=[*asked, *kept], by_key=True)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Each condition of `when` is true; it is false. Without one nothing is decided."""
        return outcomes(self.when, "when")

    def counting(self, took: Took) -> Self:
        """Return one with conditions that tell."""
        return altered(self, when=all_counted(self.when, took, "when"))

    @property
    def _paths(self) -> dict[str, Path]:
        """Where the value of each name is."""
        return {each.as_: Path(each.field) for each in self.remember}

    def step(self, ctx: Context) -> Step:
        """Return the plain form."""
        paced = self.paced(ctx)
        return lambda batch: [made for made in paced(batch) if made is not None]

    def paced(self, ctx: Context) -> PacedStep:
        """Return the plain form in slices: look at one message after the other, then write."""
        bucket, key = ctx.bucket(), MessageKey.in_pipeline(ctx)
        matches, paths = all_hold(self.when), self._paths

        def writes(messages: Batch) -> Iterator[tuple[str, dict[str, JsonValue]]]:
            for message in filter(matches, messages):
                if type(message) is not dict:
                    ctx.warn_once(NOT_AN_OBJECT)
                elif (under := key.of(message)) is None:
                    ctx.warn_once(_unfiled(key))
                else:
                    found = {name: path.read(message) for name, path in paths.items()}
                    written = {name: value for name, value in found.items() if value is not MISSING}
                    if written:
                        yield under, written

        def remembered(batch: Batch) -> Iterator[Batch | None]:
            is_sliced = is_large(batch)
            turns: list[tuple[str, Assigned]] = LargeList() if is_sliced else []
            for part in parts(batch):
                turns += writes(part)
                yield None
            if is_sliced:
                yield from bucket.merging(turns)
            else:
                self._write(turns, bucket)
            yield batch

        return remembered

    def _write(self, turns: Sequence[tuple[str, Mapping[str, JsonValue]]], bucket: Bucket) -> None:
        """Write what each message has, as one after the other would."""
        gathered: Writes = {}
        for under, written in reversed(turns):
            gathered[under] = {**written, **gathered.get(under, {})}
        if len(gathered) < len(turns) and bucket.displaces(gathered):
            bucket.merge_in_turn(turns)
        else:
            bucket.merge(self._in_order(gathered))

    def _ordered(self, found: Assigned) -> Assigned:
        """Return names in the order of the config."""
        return {each.as_: found[each.as_] for each in self.remember if each.as_ in found}

    def _in_order(self, gathered: Writes) -> Writes:
        """Return what was gathered from the last message to the first, in the order to write it in.

        The key that was written last comes last; its names come in the order of the config.
        """
        return {under: self._ordered(found) for under, found in reversed(gathered.items())}

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """Each message is the one that came."""
        return [[[index] for index in range(len(batch))]]

    def generate(self, code: Code, ctx: Context) -> None:
        """Write what is kept of a message. It goes into the bucket behind the loop.

        The last message is looked at first, so that what is kept of a key is its last message, and the
        key that is written last comes first. The hopeful source keeps those messages whole: where all
        of them have all the fields, none before them counts. Where one has not, the careful source
        writes everything again. What a key was written before decides only where keys have to go: the
        plain form writes one message after the other then.
        """
        bucket, key = ctx.bucket(), MessageKey.in_pipeline(ctx)
        kept, again = code.name("kept"), code.name("again")
        code.before(f"{kept} = {{}}", f"{again} = False")
        code.last_first()
        with where_all_hold(self.when, code):
            if key.field is None:
                code.give_up_unless(f"{code.message}.__class__ is dict")
            under = code.let(key.source(code), "under")
            if code.is_hopeful:
                code.line(f"if {under} in {kept}: {again} = True")
                code.line(f"else: {kept}[{under}] = {code.message}")
            else:
                self._keep_what_is_there(kept, under, again, code)
        if key.field is not None:
            _warn_of_unfiled(kept, _unfiled(key), code, ctx)
        displaces, crowds = (
            code.constant(asked, asked.__name__)
            for asked in (bucket.displaces, bucket.is_crowded_by)
        )
        code.after(
            f"if {again} and {displaces}({kept}): raise GiveUp",
            paced=f"if {again} and {crowds}({kept}): raise GiveUp",
        )
        found = partial(_all_of, self._paths) if code.is_hopeful else self._ordered
        merging = partial(_merging, bucket, found)
        code.after(
            self._commit(kept, code, bucket),
            paced=f"yield from {code.constant(merging, 'merging')}({kept})",
        )
        code.returns("batch")

    def _keep_what_is_there(self, kept: str, under: str, again: str, code: Code) -> None:
        """Write how those values are kept that a message has and none behind it has."""
        missing, found = code.constant(MISSING, "missing"), code.name("found")
        reads = {
            name: f"{code.message}.get({path.text!r}, {missing})"
            if path.is_plain
            else f"{code.constant(path, 'path')}.read({code.message})"
            for name, path in self._paths.items()
        }
        values = {name: code.let(read, name) for name, read in reads.items()}
        is_there = {name: f"{value} is not {missing}" for name, value in values.items()}
        code.line(
            f"if {under} in {kept}:",
            f"    {again}, {found} = True, {kept}[{under}]",
            *(
                f"    if {is_there[name]} and {name!r} not in {found}: {found}[{name!r}] = {value}"
                for name, value in values.items()
            ),
            f"elif {under} is None or {' or '.join(is_there.values())}:",
            f"    {found} = {kept}[{under}] = {{}}",
            *(
                f"    if {is_there[name]}: {found}[{name!r}] = {value}"
                for name, value in values.items()
            ),
        )

    def _commit(self, kept: str, code: Code, bucket: Bucket) -> str:
        """Return the statement that writes what is kept."""
        if code.is_hopeful:
            reads = {name: subscripts(path) for name, path in self._paths.items()}
            return f"{code.constant(bucket.writer(reads), 'write')}({kept})"
        in_order = code.constant(self._in_order, "in_order")
        return f"{code.constant(bucket.merge, 'merge')}({in_order}({kept}))"


def _merging(
    bucket: Bucket, found: Callable[[Any], Assigned], kept: dict[str, Any]
) -> Iterator[None]:
    """Write what is kept of a large batch, last key first, in slices."""
    turns: list[tuple[str, Assigned]] = LargeList()
    for part in parts(reversed(kept.items())):
        turns += [(under, found(each)) for under, each in part]
        yield
    yield from bucket.merging(turns)


def _all_of(paths: Mapping[str, Path], message: JsonValue) -> Assigned:
    """Return what is kept of a message that has all of it.

    Raises:
        KeyError: it has not.
    """
    found = {name: path.read(message) for name, path in paths.items()}
    if any(value is MISSING for value in found.values()):
        raise KeyError
    return found


def _warn_of_unfiled(kept: str, text: str, code: Code, ctx: Context) -> None:
    """Write what becomes of messages without a key: once a batch, and the plain form warns."""

    def warn() -> None:
        if not ctx.has_warned(text):
            raise GiveUp

    lines = f"if None in {kept}:", f"    {code.constant(warn, 'warn')}()", f"    del {kept}[None]"
    code.after(*lines)


def _unfiled(key: MessageKey) -> str:
    """Return what is said of a message without a key, the first time."""
    return f"remembered nothing of a message whose '{key.field}' is not a string, number or boolean"
