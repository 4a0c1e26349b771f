"""The `reducer` transform: one message per group of a batch."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import ClassVar, Self, TypeVar

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, PacedStep, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import FAILS_AS_A_WHOLE
from headrace.compiler.component.families import Origins, PerBatch
from headrace.compiler.component.fieldflow import Demand, FieldUse, Passing
from headrace.compiler.delivery import Batch, JsonValue, is_large, parts
from headrace.compiler.dottedpaths import MISSING
from headrace.compiler.dottedpaths import DottedPath as At
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import LargeList
from headrace.compiler.schema.fields import Choice, MessageField, Name
from headrace.compiler.schema.records import Record, listed, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Codes, Fault, Severity, repeated
from headrace.operators.accumulation import Accumulation
from headrace.operators.aggregations import FUNCTIONS, OTHER_NAMES, AggregateFunction, exact

CODES: Codes = {
    "nothing-batches": "A reducer has nothing before it that makes batches.",
}

_T = TypeVar("_T")
Groups = dict[tuple[bytes, ...], list[_T]]
"""What belongs to each group, by what its messages have in common."""

MISSED = "missing from a message, or null"
SPARES_NULLS = "set 'on_missing' to skip here"


class Aggregation(Record):
    """One value made of the messages of a group."""

    function: str = option(
        Choice(*FUNCTIONS, elsewhere=OTHER_NAMES),
        "What is made of them. `sum`, `avg`, `median` and `stddev` (of all values, not of a sample) "
        "take numbers only, `min` and `max` numbers only or strings only.",
        elsewhere="aggregate aggregation fn func op operation type",
    )
    as_: str = option(
        Name(),
        "Field of the result; a dot in it means nothing.",
        elsewhere="alias into name output target to",
    )
    field: str | None = option(
        MessageField(),
        "Field whose values are taken. Only `count` can do without: then it counts messages, "
        "and with it those that carry the field.",
        default=None,
        elsewhere="column from of on path value",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a function without the field it needs."""
        if self.field is None and self.function != "count":
            yield Fault(
                "missing-key",
                f"'{self.function}' needs a 'field' to take values from; only 'count' does without",
                expected="a dotted path",
                path=("field",),
            )

    @property
    def known(self) -> AggregateFunction:
        """The function itself."""
        return FUNCTIONS[self.function]

    def of(self, messages: Batch, *, may_miss: bool) -> Generator[None, None, JsonValue]:
        """Return the value; pause after each part of many messages.

        Raises:
            BatchFailed: a message lacks the field and may not, or its value is of a wrong type.
        """
        if self.field is None:
            return len(messages)
        at, values = At(self.field), []
        for part in parts(messages):
            values += [value for each in part if (value := present(at, each)) is not None]
            yield
        if len(values) < len(messages) and not may_miss and self.function != "count":
            raise BatchFailed(MISSED)
        return self.known.fold(values)


class Reducer(
    PerBatch,
    kind="reducer",
    listed=4,
    elsewhere="aggregate aggregation group group_by reduce summarize",
):
    """Reduce each batch to one message per group.

    Messages with the same values in the `group_by` fields are one group; without `group_by` the whole
    batch is one. The result carries the group fields, under the names as they are written there, and
    the aggregations; groups come in the order in which they were first seen. A reducer sees one batch
    at a time: put a `buffer` before it, or an input with one.

    ``1``, ``1.0``, ``"1"`` and ``true`` are four different values; objects are the same when their content
    is. Null is missing. Integers stay integers of any size in `sum`, `min` and `max`; the other
    functions of numbers give doubles, and null where the result would not be finite or where there
    is no value. A value of a wrong type fails the batch.
    """

    lacks: ClassVar = FAILS_AS_A_WHOLE

    aggregations: tuple[Aggregation, ...] = option(
        ListOf(RecordOf(Aggregation), at_least=1, noun="aggregation"),
        "What is made of each group.",
        elsewhere="aggregates fields functions metrics select values",
    )
    group_by: tuple[str, ...] = option(
        ListOf(MessageField()),
        "Fields whose values make a group.",
        default=(),
        elsewhere="by group key keys partition_by",
    )
    on_missing: str = option(
        Choice(
            "error",
            "skip",
            never_absent=True,
            elsewhere={"error": "fail", "skip": "drop ignore omit"},
        ),
        "For a message that lacks a field: `error` fails the batch; `skip` leaves it out, of "
        "everything if it is a group field, else of that aggregation.",
        default="error",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse two values under one name."""
        groups = ((path, ("group_by", n)) for n, path in enumerate(self.group_by))
        values = ((each.as_, ("aggregations", n, "as")) for n, each in enumerate(self.aggregations))
        return repeated((*groups, *values))

    def oddities(self, before: Passing) -> Iterator[Fault]:
        """Warn where every batch is one message."""
        if before.largest == 1:
            where = "before it" if before.cut_by is None else f"after {before.cut_by}"
            message = f"this {self.kind} sees one message at a time: nothing {where} batches"
            yield Fault("nothing-batches", message, severity=Severity.WARNING)

    def field_use(self) -> FieldUse:
        """It reads what it groups by and takes values from, and hands on nothing else."""
        taken = [
            (each.function, each.field) for each in self.aggregations if each.field is not None
        ]
        needed = [field for function, field in taken if function != "count"]
        return FieldUse.of(
            reads=[*self.group_by, *(field for _, field in taken)],
            keys=[*self.group_by, *(each.as_ for each in self.aggregations)],
            keeps=False,
            drops_without=[*self.group_by, *(needed if self.on_missing == "error" else ())],
        )

    def demands(self) -> Iterator[Demand]:
        """Without what it groups by and takes values from, `on_missing` fails the batch; `count` counts."""
        if self.on_missing == "error":
            for index, path in enumerate(self.group_by):
                yield Demand(path, ("group_by", index), SPARES_NULLS)
            for index, each in enumerate(self.aggregations):
                if each.field is not None and each.function != "count":
                    yield Demand(each.field, ("aggregations", index, "field"), SPARES_NULLS)

    @property
    def _needed(self) -> list[str]:
        """The fields that `on_missing` is about."""
        taken = [each.field for each in self.aggregations if each.function != "count"]
        return [*dict.fromkeys([*self.group_by, *filter(None, taken)])]

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """All fields that it needs are there; `on_missing` is taken, unless it is `error`."""
        if needed := self._needed:
            names, of_one = listed(needed), " in one message" * (len(needed) > 1)
            verb = "was" if len(needed) == 1 else "were"
            yield Branch("found", f"{names} {verb} never there{of_one}")
            if self.on_missing == "skip":
                yield Branch("on_missing", f"{names} {verb} never missing ('on_missing' is skip)")

    def counting(self, took: Took) -> Self:
        """Return one that tells of each batch whether there are messages that lack something."""
        places = [At(path) for path in self._needed]

        def reduced(batch: Batch) -> Iterator[Batch | None]:
            for message in batch:
                lacks = any(present(place, message) is None for place in places)
                took("on_missing" if lacks else "found")
            return self._reduced(batch)

        return altered(self, _reduced=reduced)

    def passes(self, before: Passing) -> Passing:
        """One message comes after it where the whole batch is one group."""
        after = before.after(self.field_use())
        return after if self.group_by else after.at_most(1)

    def step(self, ctx: Context) -> Step:
        """Return the plain form."""
        return self.reduce

    def paced(self, ctx: Context) -> PacedStep:
        """Return the plain form in slices."""
        return self._reduced

    def generate(self, code: Code, ctx: Context) -> None:
        """Write how a message is counted in."""
        Accumulation(self, code).write()

    def reduce(self, batch: Batch) -> list[Batch]:
        """Return one batch with a message per group: slow and exact.

        Shape: n messages in, one batch of 1 to n out, or none when every message was left out.

        Raises:
            BatchFailed: a message lacks a field under ``error``, or a value is of a wrong type.
        """
        return [made for made in self._reduced(batch) if made is not None]

    def _reduced(self, batch: Batch) -> Iterator[Batch | None]:
        groups: Groups[JsonValue] = {}
        if self.group_by:
            for part in parts(batch):
                self._group(part, part, groups)
                yield None
        elif batch:
            groups[()] = batch
        results: Batch = LargeList() if is_large(batch) else []
        for messages in groups.values():
            results.append((yield from self._result(messages)))
        if results:
            yield results

    def _group(self, messages: Batch, items: Iterable[_T], groups: Groups[_T]) -> None:
        """Add to their groups what stands for the messages: themselves, or their indices."""
        places = [At(path) for path in self.group_by]
        for message, item in zip(messages, items, strict=True):
            values = [present(place, message) for place in places]
            if None not in values:
                groups.setdefault(tuple(map(exact, values)), []).append(item)
            elif self.on_missing == "error":
                path = self.group_by[values.index(None)]
                raise BatchFailed(f"group_by '{path}': {MISSED}")

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """A message stands for its group."""
        groups: Groups[int] = {}
        self._group(batch, range(len(batch)), groups)
        return [[*groups.values()]] if made else []

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return which group field it lacks."""
        absent = [path for path in self.group_by if present(At(path), message) is None]
        return f"'{absent[0]}' is missing or null, and 'on_missing' is skip"

    def _result(self, messages: Batch) -> Generator[None, None, dict[str, JsonValue]]:
        """Return the message of a group; pause on the way."""
        result = {path: At(path).read(messages[0]) for path in self.group_by}
        for index, each in enumerate(self.aggregations):
            try:
                result[each.as_] = yield from each.of(messages, may_miss=self.on_missing == "skip")
            except BatchFailed as cause:
                named = f"aggregation {index} ('{each.function}' of '{each.field}')"
                raise BatchFailed(f"{named}: {cause}") from cause
        return result


def present(at: At, message: JsonValue) -> JsonValue:
    """Return the value at a path, or None where it is null or missing: to a reducer the same."""
    value = at.read(message)
    return None if value is MISSING else value
