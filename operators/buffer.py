"""The `buffer` transform: holds messages and releases them on a trigger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.compiler.delivery import Delivery
from headrace.compiler.language.context import Context, Operator
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.families import Transform
from headrace.compiler.language.fieldflow import FieldUse, Passing
from headrace.compiler.language.fields import Integer
from headrace.compiler.language.records import option
from headrace.compiler.lowering.holding import Holding, holding


class Buffer(Transform, kind="buffer", listed=1):
    """Hold messages and release them together, on a trigger.

    Triggers compose, any one is enough. `size` hands on batches of exactly that many as they fill,
    and the remainder stays held. `seconds` releases everything held, as one batch, so long after
    the first held message came; after a batch of `size` has left, the remainder counts from its
    own first message. While nothing is held no clock runs.

    `max_messages` bounds what is held: reaching it releases everything, and is warned about once.
    What is still held when the pipeline ends goes through the rest of the chain before the outputs
    finish. A message is acknowledged to its broker when it has left the outputs, not when it is held.
    """

    is_gathering = True

    size: int | None = option(
        Integer(min=1), "Hand on batches of exactly this many as they fill.", default=None
    )
    seconds: int | None = option(
        Integer(min=1),
        "Release everything held this many seconds after the first held message.",
        default=None,
    )
    max_messages: int | None = option(
        Integer(min=1),
        "Most messages held; reaching it releases all of them. Required unless `size` is set, "
        "which bounds as well.",
        default=None,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a buffer that nothing releases or nothing bounds."""
        if self.size is None and self.seconds is None:
            yield Fault(
                "no-trigger",
                "a buffer needs a trigger that releases what it holds",
                expected="'size', or 'seconds' with 'max_messages'",
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

    def field_use(self) -> FieldUse:
        """It looks at no field."""
        return FieldUse.of()

    @property
    def limit(self) -> int:
        """Most messages of a batch."""
        # Below `size` after every message, what is held never reaches a bound above it.
        limit = self.size or self.max_messages
        assert limit is not None  # the rules saw to it
        return limit

    def passes(self, before: Passing) -> Passing:
        """Any batch that it fills may come after it."""
        return before.at_most(self.limit)

    def operator(self, ctx: Context) -> Operator:
        """Return the operator that holds."""
        limit = self.limit
        overflow = (
            f"held {limit} messages ('max_messages') before {self.seconds} seconds were over:"
            " released early"
        )

        def let_go(held: Holding) -> Iterable[Delivery]:
            if held.count < limit:
                return ()
            if self.size is None:
                ctx.warn_once(overflow)
            return [held.cut(limit) for _ in range(held.count // limit)]

        return holding(let_go, self.seconds, ctx)
