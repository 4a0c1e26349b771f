"""The `explode` transform: the items of a list become messages."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

from headrace.compiler.clock import Clock
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import (
    Context,
    FailedMessages,
    Operator,
    PacedStep,
    Step,
)
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import Failing, FailsByMessage, Lose
from headrace.compiler.component.families import Origins, Transform
from headrace.compiler.component.fieldflow import Demand, FieldUse
from headrace.compiler.component.promises import HOLDS_NOTHING
from headrace.compiler.delivery import LARGE_BATCH, Batch, JsonValue, is_large, parts
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import DecodedBatch, LargeList
from headrace.compiler.largejson.letting_go import MESSAGES_AT_ONCE
from headrace.compiler.schema.fields import Choice, Integer, MessageField
from headrace.compiler.schema.records import json_type, option
from headrace.compiler.schema.structures import ObjectOf
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.founditems import (
    FoundItems,
    ReadField,
    as_it_is,
    beside,
    inside,
    made_of_all,
    reader,
)
from headrace.operators.sharing import MOST_SHARED, MUCH_SHARED, size_of, size_of_few

_MOST_ITEMS = 1_000_000
_ITEMS = 100_000


class Explode(
    FailsByMessage,
    Transform,
    kind="explode",
    listed=9,
    elsewhere="array_join expand flatten flatmap for_each unarchive unnest unroll unwind",
):
    """Make a message of each item of a list: all of a batch is one batch again, in order.

    Without `as` an item, which has to be an object then, is the message, with the fields of `keep` beside
    its own. With `as` the message stays, without the list, and the item is in it. An empty list makes
    nothing. Items and what they share are not copied, and numbers keep their digits.

    What is no list, or an item that is no object and has no `as`, fails the batch. So do more than
    `max_items` messages of one batch, and more than 24 MiB of JSON that they share: it counts once for each
    of them, as it does once they are written.

    Under `on_error: skip` such a message costs itself, with all of its items, and is counted as lost; so
    does one that is beyond one of the two bounds alone. All of a batch together still fails it, and a
    message that is lost for one of its items counts there.
    """

    promises: ClassVar = (HOLDS_NOTHING,)
    is_gathering: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True

    from_: str = option(MessageField(), "The list.", elsewhere="field items key list path source")
    keep: Mapping[str, str] | None = option(
        ObjectOf(MessageField(), noun="dotted path", null_is_absent=True),
        "Fields of the message that each item gets, by the name that they have in it: "
        "`{ order_id: order.id }`. They are written over those of the item; what is missing is left out.",
        default=None,
        elsewhere="add carry copy fields with",
    )
    as_: str | None = option(
        MessageField(),
        "Where in the message the item is put, in place of being the message. Not beside `keep`.",
        default=None,
        elsewhere="alias into item name output target",
    )
    index_as: str | None = option(
        MessageField(),
        "Where the place of the item is put, counted from 0.",
        default=None,
        elsewhere="index offset position with_index",
    )
    max_items: int = option(
        Integer(min=1, max=_MOST_ITEMS),
        f"Messages that are made of one batch; at most {_MOST_ITEMS:,}. Where there would be more, the "
        "batch fails.",
        default=_ITEMS,
        elsewhere="limit max max_messages",
    )
    on_missing: str = option(
        Choice(
            "error",
            "skip",
            "keep",
            never_absent=True,
            elsewhere={"error": "fail", "skip": "drop ignore omit", "keep": "pass"},
        ),
        "For a message in which the list is missing or null: `error` fails the batch, `skip` drops the "
        "message, `keep` hands it on as it is.",
        default="error",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse two ways to say what a message is, and a place that is written twice."""
        if self.as_ is not None and self.keep:
            yield Fault(
                "conflict",
                "'keep' is for items that are the message, and with 'as' all of the message is kept",
                expected="'keep' or 'as'",
                path=("keep",),
            )
        index = self.index_as
        if index is not None and (index in self._kept or index == self.as_):
            yield Fault(
                "duplicate",
                f"'{index}' is written twice",
                found=index,
                expected="a field of its own for the place",
                path=("index_as",),
            )
        elif index is not None and self.as_ is not None and self.as_.startswith(f"{index}."):
            yield Fault(
                "scalar-in-the-way",
                f"cannot write '{self.as_}': 'index_as' makes '{index}' a number",
                found=index,
                expected=f"a field that is not above '{self.as_}'",
                path=("index_as",),
            )

    @property
    def _kept(self) -> Mapping[str, str]:
        return self.keep or {}

    def field_use(self) -> FieldUse:
        """It reads the list and what is kept; an item may have any field."""
        written = [path for path in (self.as_, self.index_as) if path is not None]
        ways = [way for path in written if "." in path for way in (path, path.split(".")[0])]
        drops = [self.from_] if self.on_missing == "skip" else []
        if self.as_ is None:
            return FieldUse.of(
                reads=[self.from_, *self._kept.values(), *ways],
                writes=written,
                asks=[self.from_, *self._kept.values()],
                keys=self._kept,
                keeps=False,
                is_open=True,
                drops_without=drops,
            )
        return FieldUse.of(
            reads=[self.from_, *ways],
            writes=written,
            removes=[self.from_],
            asks=[self.from_],
            drops_without=drops,
        )

    def demands(self) -> Iterator[Demand]:
        """Without the list it fails the batch."""
        if self.on_missing == "error":
            yield Demand(self.from_, ("from",), "set 'on_missing' to skip or keep here")

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """A list has items; one has none; `on_missing` is taken, unless it is `error`; one is skipped."""
        yield Branch("items", f"'{self.from_}' never had an item", ("from",))
        yield Branch("empty", f"'{self.from_}' was never empty", ("from",))
        if self.on_missing != "error":
            said = f"'{self.from_}' was never missing ('on_missing' is {self.on_missing})"
            yield Branch("on_missing", said)
        yield from self.skipped()

    def counting(self, took: Took) -> Self:
        """Return one that tells what it found."""

        def rows(message: JsonValue) -> FoundItems | None:
            found = self._rows(message)
            if self._list.read(message) in (MISSING, None):
                took("on_missing")
            else:
                took("items" if found is not None and found.items else "empty", "from")
            return found

        return altered(self, _rows=rows)

    def step(self, ctx: Context) -> Step:
        """Return it in one go."""
        paced = self.paced(ctx)
        return lambda batch: [made for made in paced(batch) if made is not None]

    def paced(self, ctx: Context) -> PacedStep:
        """Return it in slices."""
        lose = ctx.lose if self.skips_failing else None
        return lambda batch: self._exploded(batch, lose)

    def operator(self, ctx: Context) -> Operator:
        """Return the operator that pauses: one message may make a hundred thousand."""
        paced = self.paced(ctx)
        return ctx.lift_pausing(
            lambda batch, seconds: Exploding(paced(batch), ctx.clock).begin(seconds)
        )

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """Each message came from the one that had it in its list."""
        sources = [[index] for index, message in enumerate(batch) for _ in self._made_of(message)]
        return [sources] if made else []

    def _made_of(self, message: JsonValue) -> Batch:
        """Return what is made of a message by itself; nothing of one that fails, if that is left out."""
        lose = _lose_unheard if self.skips_failing else None
        return next((made for made in self._exploded([message], lose) if made is not None), [])

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return whether the list is empty or missing."""
        if self._list.read(message) in (MISSING, None):
            return f"'{self.from_}' is missing or null, and 'on_missing' is skip"
        return f"'{self.from_}' is an empty list"

    def _exploded(self, batch: Batch, lose: Lose | None) -> Iterator[Batch | None]:
        """Yield the messages as one batch in the end, if there are any; None where others may have a turn.

        Nothing is made before it is certain how many there will be. ``lose`` is told of the messages that
        the batch goes on without; without it the first of them fails the batch.

        Raises:
            BatchFailed: a message cannot be done, or there would be too many.
        """
        failing = Failing()
        try:
            made = yield from self._made(batch, None if lose is None else failing)
            if lose is not None:
                failing.tell(lose)
        finally:
            failing.clear()  # what was raised has this in its traceback: a circle
        if made:
            yield made

    def _made(self, batch: Batch, failing: Failing | None) -> Generator[Batch | None, None, Batch]:
        found: list[tuple[JsonValue, FoundItems]] = LargeList() if is_large(batch) else []
        count = shared = 0
        for part in parts(batch):
            for message in part:
                try:
                    rows = self._rows(message)
                    if rows is None:
                        continue
                    of_all = 0
                    if (items := len(rows.items)) > 1:
                        size = size_of_few(rows.shared)
                        if size is None or shared + items * size > MUCH_SHARED:
                            size = yield from size_of(rows.shared, MOST_SHARED // items)
                        of_all = items * size
                    if failing is not None:
                        self._bound(items, of_all)
                except Exception as cause:
                    if failing is None:
                        raise
                    failing.add(message, cause)
                    continue
                found.append((message, rows))
                count += items
                shared += of_all
                self._bound(0, shared)
            yield None
        self._bound(count, shared)
        is_sliced = is_large(batch) or count > LARGE_BATCH or shared > MUCH_SHARED
        made = _list_for(count) if is_sliced else []
        yield from made_of_all(found, made, None if failing is None else failing.add)
        if isinstance(made, DecodedBatch):
            made.slices += [MESSAGES_AT_ONCE] * (len(made) // MESSAGES_AT_ONCE)
        return made

    def _bound(self, count: int, shared: int) -> None:
        if shared > MOST_SHARED:
            raise BatchFailed(
                "its messages share too much: at most 24 MiB of JSON, counted for each of them"
            )
        if count > self.max_items:
            raise BatchFailed(
                f"makes {count:,} messages, at most {self.max_items:,} are allowed ('max_items')"
            )

    def _rows(self, message: JsonValue) -> FoundItems | None:
        """Return the items of a message: itself, if it is handed on as it is; None if it is dropped.

        Raises:
            BatchFailed: it has no list, or what is there is none.
        """
        items = MISSING if message.__class__ is not dict else self._read_list(message)
        if items is MISSING or items is None:
            if self.on_missing == "error":
                raise BatchFailed(f"field '{self.from_}' is missing or null")
            return as_it_is(message) if self.on_missing == "keep" else None
        if type(items) is not list:
            raise BatchFailed(f"field '{self.from_}' is {json_type(items)}: expected a list")
        if self._item is None:
            kept = {
                name: value
                for name, read in self._kept_readers
                if (value := read(message)) is not MISSING
            }
            return beside(self.from_, items, kept, self._place)
        return inside(self._list.remove(message), items, self._item, self._place)

    @cached_property
    def _list(self) -> DottedPath:
        return DottedPath(self.from_)

    @cached_property
    def _item(self) -> DottedPath | None:
        return None if self.as_ is None else DottedPath(self.as_)

    @cached_property
    def _place(self) -> DottedPath | None:
        return None if self.index_as is None else DottedPath(self.index_as)

    @cached_property
    def _read_list(self) -> ReadField:
        return reader(self._list)

    @cached_property
    def _kept_readers(self) -> Sequence[tuple[str, ReadField]]:
        return [(name, reader(DottedPath(path))) for name, path in self._kept.items()]


def _lose_unheard(failed: FailedMessages) -> None:
    """Tell nobody: it was told when the batch was done."""


def _list_for(count: int) -> Batch:
    """Return a list for many messages, while which is there nobody looks for cycles among all there is.

    To look through those of a hundred thousand messages takes longer than to make them.
    """
    try:
        many = DecodedBatch(asyncio.get_running_loop())
    except RuntimeError:  # none runs here
        return LargeList()
    many.add_containers(2 * count)
    return many


class Exploding:
    """What is being made of a batch, until the time of a slice is over, and then in the next one."""

    def __init__(self, making: Iterator[Batch | None], clock: Clock) -> None:
        self._making, self._clock = making, clock

    def begin(self, seconds: float) -> list[Batch] | Exploding:
        """Return what became of the batch; itself if it is not over yet."""
        batches = self.resume(seconds)
        return self if batches is None else batches

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on for so long; return what became of the batch, None when it is not over yet."""
        ends = self._clock.monotonic() + seconds
        for made in self._making:
            if made is not None:
                return [made]
            if self._clock.monotonic() >= ends:
                return None
        return []

    def close(self) -> None:
        """Make no more of it."""
        if isinstance(self._making, Generator):
            self._making.close()
