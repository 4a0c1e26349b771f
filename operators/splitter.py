"""The `splitter` transform: batches of one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, PacedStep, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import NEVER_FAILS
from headrace.compiler.component.families import Origins, Transform
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.component.promises import HOLDS_NOTHING
from headrace.compiler.delivery import LARGE_BATCH, Batch, JsonValue
from headrace.compiler.largejson import LargeList
from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import option


class Splitter(Transform, kind="splitter", listed=3, elsewhere="chunk chunks split"):
    """Cut each batch into batches of exactly ``out_size`` messages.

    Messages left over after the last whole chunk are dropped, so four messages with ``out_size`` 3
    become one batch of three, and two become none. Chunks never span batches: put a `buffer` with
    ``size`` in its place where nothing may be lost.
    """

    lacks: ClassVar = NEVER_FAILS
    promises: ClassVar = (HOLDS_NOTHING,)

    out_size: int = option(
        Integer(min=1),
        "Messages in each emitted batch.",
        elsewhere="batch_size chunk_size count size",
    )

    def field_use(self) -> FieldUse:
        """It looks at no field."""
        return FieldUse.of()

    def passes(self, before: Passing) -> Passing:
        """Batches that are always shorter than a chunk never make one."""
        if before.largest is not None and before.largest < self.out_size:
            why = f"{before.by} needs {self.out_size} messages in a batch"
            return before.stop(f"{why}, and at most {before.largest} come in one")
        return before.at_most(self.out_size)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """`out_size` is filled; messages are left over (with more than 1)."""
        if self.out_size > 1:
            yield Branch("whole", "no batch ever filled 'out_size'", ("out_size",))
            yield Branch("left over", "no message was ever left over", ("out_size",))

    def counting(self, took: Took) -> Self:
        """Return one that tells what becomes of each batch."""

        def starts(batch: Batch) -> range:
            if len(batch) >= self.out_size:
                took("whole", "out_size")
            if len(batch) % self.out_size:
                took("left over", "out_size")
            return self._starts(batch)

        return altered(self, _starts=starts)

    def step(self, ctx: Context) -> Step:
        """Return the cutting itself."""
        return self.chunks

    def paced(self, ctx: Context) -> PacedStep:
        """Return the cutting of a large batch, each chunk handed on before the next one is cut."""

        def paced(batch: Batch) -> Iterator[Batch]:
            for start in self._starts(batch):
                chunk: Batch = LargeList() if self.out_size > LARGE_BATCH else []
                chunk += batch[start : start + self.out_size]
                yield chunk

        return paced

    def chunks(self, batch: Batch) -> list[Batch]:
        """Return the whole chunks of ``batch``, in order.

        Shape: n messages in, ``n // out_size`` batches of ``out_size`` messages out.
        """
        return [batch[start : start + self.out_size] for start in self._starts(batch)]

    def _starts(self, batch: Batch) -> range:
        """Return where each whole chunk starts."""
        return range(0, len(batch) - len(batch) % self.out_size, self.out_size)

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """Each message is the next one of those that came."""
        size = self.out_size
        return [[[chunk * size + at] for at in range(size)] for chunk in range(len(made))]

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return that it is a remainder."""
        return f"left over behind the last whole batch of {self.out_size} ('out_size')"
