"""The `recall` transform: writes what is remembered onto messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self

from headrace.compiler.buckets import WHOLE, Bucket
from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, telling
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import FailsByMessage
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import Choice, Name
from headrace.compiler.schema.records import listed, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault, repeated, shown
from headrace.operators.statekey import MessageKey

NOT_AN_OBJECT = "passed on a message that is not an object, unchanged"
EMPTY: Mapping[str, JsonValue] = {}


class Recall(
    FailsByMessage, PerMessage, kind="recall", listed=7, elsewhere="enrich get load lookup"
):
    """Write what is remembered onto each message, as fields of the top level.

    Looked up is what the pipeline's bucket holds under the key of the message: the value of the
    field that `state.key` of the pipeline names, a number or boolean as JSON writes it; without
    `state.key`, what concerns the bucket as a whole. A field of the same name is overwritten.

    For a message without a key nothing is remembered. A message that is not an object has no key;
    where none is asked for, or under `on_missing: null`, it passes unchanged, with one warning.
    """

    recalls: ClassVar[bool] = True

    recall: tuple[str, ...] = option(
        ListOf(Name(), at_least=1, noun="name"),
        "Names as `remember` writes them, and the fields they are written to; a dot in one means "
        "nothing.",
        elsewhere="fields names values",
    )
    on_missing: str = option(
        Choice(
            "skip",
            "null",
            "error",
            null_word=True,
            never_absent=True,
            elsewhere={"skip": "drop ignore omit", "error": "fail"},
        ),
        "For a message of which any of the names is not remembered: `skip` drops the message, `null` "
        "writes null, `error` fails the batch.",
        default="skip",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse to write one field twice."""
        names = ((name, ("recall", index)) for index, name in enumerate(self.recall))
        said = "'{name}' is recalled by {place} already"
        return repeated(names, said=said, expected="each name once")

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Refuse to recall where there is no bucket."""
        if not context.has_state:
            yield no_state("'recall'")

    def field_use(self) -> FieldUse:
        """It reads the key, and writes keys of the top level."""
        return FieldUse.of(keys=self.recall, by_key=True)

    def passes(self, before: Passing) -> Passing:
        """Nothing comes after it where nothing has a key, unless it writes null."""
        after = super().passes(before)
        if self.on_missing == "null":
            return after.or_null(self.recall)
        if before.key is None or before.missing(before.key) is None:
            return after
        return after.stop(f"{before.by} hands on nothing without '{before.key}'")

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """All names are remembered; `on_missing` is taken, unless it is `error`; under `on_error: skip` a
        message is skipped.
        """
        names = listed(self.recall)
        said = f"{names} was never remembered"
        if len(self.recall) > 1:
            said = f"{names} were never remembered of one message"
        yield Branch("found", said)
        if self.on_missing != "error":
            said = f"{names} {'was' if len(self.recall) == 1 else 'were'} never missing"
            yield Branch("on_missing", f"{said} ('on_missing' is {self.on_missing})")
        yield from self.skipped()

    def counting(self, took: Took) -> Self:
        """Return one that tells of each message whether something is missing."""
        return telling(self, "_absent", lambda absent: took("on_missing" if absent else "found"))

    def _absent(self, values: Mapping[str, JsonValue]) -> list[str]:
        """Return the names that are not remembered."""
        return [name for name in self.recall if name not in values]

    def step(self, ctx: Context) -> Step:
        """Return the plain form: look at one message after the other."""
        bucket, key = ctx.bucket(), MessageKey.in_pipeline(ctx)
        passes_others = key.field is None or self.on_missing == "null"

        def recalled(batch: Batch) -> list[Batch]:
            cutoff, kept = bucket.cutoff(), []
            for message in batch:
                if passes_others and type(message) is not dict:
                    ctx.warn_once(NOT_AN_OBJECT)
                    kept.append(message)
                    continue
                values = _remembered(key.of(message), bucket, cutoff)
                absent = self._absent(values)
                if absent and self.on_missing == "error":
                    raise BatchFailed(_unknown(absent, key, key.of(message)))
                if not absent or self.on_missing == "null":
                    found = {name: values.get(name) for name in self.recall}
                    kept.append({**message, **found})
            return [kept] if kept else []

        return recalled

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return which names are not remembered under which key."""
        bucket, key = ctx.bucket(), MessageKey.in_pipeline(ctx)
        under = key.of(message)
        if under is None:
            return f"it has no key: '{key.field}' is not a string, number or boolean"
        values = _remembered(under, bucket, bucket.cutoff())
        absent = _listed(self._absent(values))
        where = "" if key.field is None else f" under {shown(under)}"
        return f"nothing is remembered{where} as {absent}, and 'on_missing' is skip"

    def generate(self, code: Code, ctx: Context) -> None:
        """Write where the values are, and that they are written; faults are left to the plain form."""
        values = self._values(MessageKey.in_pipeline(ctx), code, ctx.bucket())
        for name in self.recall:
            value = self._value(name, values, code)
            if "." in name:  # a key of the top level: a path with a dot would lead elsewhere
                code.replace(f"{{**{code.message}, {name!r}: {value}}}")
            else:
                code.write(DottedPath(name), value)

    def _values(self, key: MessageKey, code: Code, bucket: Bucket) -> str:
        """Write what is remembered of a message, and what becomes of one of which nothing is."""
        if key.field is None:
            code.give_up_unless(f"{code.message}.__class__ is dict")
            values = code.name("values")
            code.before(f"{values} = {code.constant(bucket.get, 'get')}({WHOLE!r})")
            return self._or_else(f"{values} is not None", values, code)
        entry = code.let(
            f"{code.constant(bucket.entries.get, 'find')}({key.source(code)})", "entry"
        )
        is_there = f"{entry} is not None"
        if bucket.bounds.idle_seconds is not None:
            cutoff = code.name("cutoff")
            code.before(f"{cutoff} = {code.constant(bucket.cutoff, 'cutoff')}()")
            is_there += f" and {entry}.at > {cutoff}"
        return self._or_else(is_there, f"{entry}.values", code)

    def _or_else(self, is_there: str, values: str, code: Code) -> str:
        """Return a name for what is remembered, having written the policy where nothing is."""
        if self.on_missing == "null":
            return code.let(
                f"{values} if {is_there} else {code.constant(EMPTY, 'empty')}", "values"
            )
        (code.keep_if if self.on_missing == "skip" else code.give_up_unless)(is_there)
        return code.let(values, "values")

    def _value(self, name: str, values: str, code: Code) -> str:
        """Write one value; where it is missing, the hopeful source and that of ``error`` raise."""
        if self.on_missing == "null":
            return code.let(f"{values}.get({name!r})", name)
        if self.on_missing == "skip" and not code.is_hopeful:
            code.keep_if(f"{name!r} in {values}")
        return code.let(f"{values}[{name!r}]", name)


def _remembered(key: str | None, bucket: Bucket, cutoff: float) -> Mapping[str, JsonValue]:
    """Return what is remembered under a key."""
    entry = None if key is None else bucket.entries.get(key)
    return EMPTY if entry is None or entry.at <= cutoff else entry.values


def _unknown(absent: Sequence[str], key: MessageKey, under: str | None) -> str:
    """Return why a batch fails, without the value of the key: such failures are counted as one."""
    if under is None:
        return f"a message has no key: its '{key.field}' is not a string, number or boolean"
    of = "" if key.field is None else f" for the '{key.field}' of a message"
    return f"nothing is remembered as {_listed(absent)}{of}"


def _listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence."""
    return " or ".join(f"'{name}'" for name in names)
