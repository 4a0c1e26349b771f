"""The `buffer` transform: holds messages and releases them on a trigger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar, Self

from headrace.compiler.buckets import WHOLE
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import Condition, all_counted, all_hold, outcomes
from headrace.compiler.component.failingmessages import FAILS_AS_A_WHOLE
from headrace.compiler.component.families import Transform
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.promises import TransformPromises
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import Delivery, JsonValue
from headrace.compiler.lowering.holding import Holding, holding
from headrace.compiler.schema.fields import BucketName, Integer, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault

Told = Callable[[], None]

CODES: Codes = {
    "no-bound": "Nothing bounds what a buffer holds.",
}


class Gate(Record):
    """Open while all its conditions hold for what a bucket holds under one key.

    What any pipeline writes under that key is looked at there and then. What has not been written, or
    has expired, leaves the gate closed; that it expires is seen when the next batch arrives.
    """

    conditions: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        "What has to hold, all of it, of the remembered values: their names are the fields.",
        elsewhere="condition when where",
    )
    bucket: str | None = option(
        BucketName(),
        "A bucket that the config declares; left out, that of the pipeline.",
        default=None,
    )
    key: str | None = option(
        Text(),
        "Key to look under, taken as it stands; left out, what concerns the bucket as a whole.",
        default=None,
    )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Refuse a gate of which nobody says which bucket it looks at."""
        if self.bucket is None and not context.has_state:
            expected = "'bucket' in 'until', or 'state' on the pipeline"
            yield replace(no_state("'until'"), expected=expected)

    def kept(self, ctx: Context) -> tuple[Callable[[], bool], Callable[[Told], Told]]:
        """Return what tells whether it is open, and what has one told of every write under its key.

        The latter returns what ends that. May refuse; watches nothing yet.
        """
        bucket, key = ctx.bucket(self.bucket), WHOLE if self.key is None else self.key
        holds = all_hold(self.conditions)

        def is_open() -> bool:
            return holds(bucket.get(key))  # where there is none, every field is missing

        return is_open, partial(bucket.watch, key)


class Buffer(Transform, kind="buffer", listed=1, elsewhere="batch batcher hold window"):
    """Hold messages and release them together, on a trigger.

    Triggers compose, any one is enough. `size` hands on batches of exactly that many as they fill,
    and the remainder stays held. `seconds` releases everything held, as one batch, so long after
    the first held message came; after a batch of `size` has left, the remainder counts from its
    own first message. While nothing is held no clock runs. `until` is a gate: a write to a bucket
    that opens it releases everything held there and then, as one batch. While it is open every
    arriving batch goes straight through, together with what was held; with `size`, whole batches
    leave first and the gate is for the rest.

    `max_messages` bounds what is held: reaching it releases everything, and is warned about once.
    What is still held when the pipeline ends goes through the rest of the chain before the outputs
    finish. A message is acknowledged to its broker when it has left the outputs, not when it is held.
    """

    lacks: ClassVar = FAILS_AS_A_WHOLE
    is_gathering = True
    promises: ClassVar = (TransformPromises(holds="`size` messages, else `max_messages`"),)

    size: int | None = option(
        Integer(min=1),
        "Hand on batches of exactly this many as they fill.",
        default=None,
        elsewhere="batch_size count length messages",
    )
    seconds: int | None = option(
        Integer(min=1),
        "Release everything held this many seconds after the first held message.",
        default=None,
        elsewhere="duration every interval period timeout window window_seconds",
    )
    max_messages: int | None = option(
        Integer(min=1),
        "Most messages held; reaching it releases all of them. Required unless `size` is set, "
        "which bounds as well.",
        default=None,
        elsewhere="capacity limit max max_size",
    )
    until: Gate | None = option(
        RecordOf(Gate),
        "Release everything held when this gate opens.",
        default=None,
        elsewhere="gate when",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a buffer that nothing releases or nothing bounds."""
        if self.size is None and self.seconds is None and self.until is None:
            yield Fault(
                "no-trigger",
                "a buffer needs a trigger that releases what it holds",
                expected="'size', or 'seconds' or 'until' with 'max_messages'",
            )
        elif self.size is None and self.max_messages is None:
            yield Fault(
                "no-bound",
                "a buffer without 'size' needs 'max_messages' to bound what it holds",
                expected="'max_messages', or 'size'",
            )
        if (
            self.size is not None
            and self.max_messages is not None
            and self.max_messages < self.size
        ):
            yield Fault(
                "out-of-range",
                f"'max_messages' is below 'size' ({self.size}), so no batch would ever fill",
                found=str(self.max_messages),
                expected=f"at least {self.size}",
                path=("max_messages",),
            )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Refuse a gate that nobody gives a bucket."""
        for fault in self.until.examine(context) if self.until is not None else ():
            yield replace(fault, path=("until", *fault.path))

    def field_use(self) -> FieldUse:
        """It looks at no field: what a gate looks at is in a bucket."""
        return FieldUse.of()

    @property
    def limit(self) -> int:
        """Most messages that stay held."""
        # Below `size` after every message, what is held never reaches a bound above it.
        limit = self.size or self.max_messages
        assert limit is not None  # the rules saw to it
        return limit

    def holder(self) -> Holder:
        """All that comes is held."""
        return Holder(self.limit, self.seconds, self.until is not None)

    def passes(self, before: Passing) -> Passing:
        """Any batch that it fills may come after it; through an open gate, also one on top of that."""
        if self.until is None or self.size is not None:
            return before.at_most(self.limit)
        on_top = before.largest and before.largest + self.limit - 1
        return before.at_most(on_top)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Each trigger lets go. Each condition of a gate is true; it is false.

        Beside `size`, `max_messages` is never reached.
        """
        triggers = ("size", "seconds", "until", "max_messages" if self.size is None else None)
        for name in filter(None, triggers):
            if getattr(self, name) is not None:
                yield Branch(name, f"'{name}' never let go", (name,))
        if self.until is not None:
            yield from outcomes(self.until.conditions, "until", "conditions")

    def counting(self, took: Took) -> Self:
        """Return one with a gate whose conditions tell."""
        if self.until is None:
            return self
        conditions = all_counted(self.until.conditions, took, "until", "conditions")
        return altered(self, until=altered(self.until, conditions=conditions))

    def operator(self, ctx: Context) -> Operator:
        """Return the operator that holds."""
        size, limit = self.size, self.limit
        is_open, watch = (None, None) if self.until is None else self.until.kept(ctx)

        def leaving(held: Holding) -> Iterator[Delivery]:
            while held.count:
                if size is not None and held.count >= size:
                    ctx.took("size", "size")
                    yield held.cut(size)
                elif is_open is not None and is_open():
                    ctx.took("until", "until")
                    yield held.release()
                elif held.count >= limit:
                    ctx.took("max_messages", "max_messages")
                    ctx.warn_once(self._overflow)
                    yield held.cut(limit)
                else:
                    return

        def is_over() -> None:
            ctx.took("seconds", "seconds")

        def let_go(held: Holding) -> Iterable[Delivery]:
            return () if is_open is None and held.count < limit else leaving(held)

        operator = holding(let_go, self.seconds, ctx, watch, on_time=is_over, most=limit)
        # Through an open gate a batch goes as it came, so it is not divided before.
        return operator if watch is not None else ctx.in_parts(operator)

    def fills_at(self, ctx: Context) -> int | None:
        """Return how many leave together; while the gate is open, any number."""
        is_open, _ = (None, None) if self.until is None else self.until.kept(ctx)
        return None if is_open is not None and is_open() else self.limit

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return what it waits for."""
        return "until " + ", or ".join(
            [
                f"there are {self.limit}",
                *([] if self.seconds is None else [f"{self.seconds} s after the first one came"]),
                *([] if self.until is None else ["the gate opens"]),
            ]
        )

    @property
    def _overflow(self) -> str:
        """What is said when the bound is reached, the first time."""
        waited_for = [
            *([] if self.seconds is None else [f"{self.seconds} seconds were over"]),
            *([] if self.until is None else ["the gate opened"]),
        ]
        return (
            f"held {self.limit} messages ('max_messages') before {' or '.join(waited_for)}:"
            " released early"
        )
