"""The inbox of a reader whose upstream waits: a batch counts as delivered when the reader has written it.

Its custody is not closed as it is put into the inbox, but then. So whatever keeps it for the upstream, a
broker or a journal, goes on keeping it, and a kill brings it again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from headrace.compiler.delivery import Batch, Debt, Delivery
from headrace.compiler.edges import INBOX_BATCHES, Arrival
from headrace.compiler.runtime.inbox import OWED_TO_NOBODY, Inbox
from headrace.compiler.runtime.selecting import Select


class InboxOwner(Protocol):
    """The input that reads an inbox."""

    pipeline: str

    @property
    def is_deleted(self) -> bool:
        """Whether its pipeline ends as it is deleted or exchanged."""

    @property
    def is_disposed(self) -> bool:
        """Whether its pipeline ends as somebody has deleted it."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether its pipeline was refused, or given up before it ran."""

    def on_finish(self, action: Callable[[], Awaitable[None]]) -> None:
        """Have something awaited once when the pipeline has ended."""

    def report_unread(self, size: int) -> None:
        """Count a batch as lost that was accepted and that nobody will read."""

    def release(self) -> int:
        """Have what buffers hold that may let go early go now; return how many messages that were."""

    def held(self) -> int:
        """Return how many messages buffers hold on purpose."""


class Owed:
    """A batch that is not written yet, and the custody that is open for it."""

    __slots__ = ("batch", "custody")

    def __init__(self, batch: Batch, custody: Debt | None) -> None:
        self.batch, self.custody = batch, custody

    def __len__(self) -> int:
        return len(self.batch)

    def close(self) -> None:
        """Tell whoever keeps it that it need not any more."""
        if self.custody is not None:
            self.custody.close()


class OwingInbox(Inbox):
    """An inbox whose upstream waits until what it handed on is written."""

    takes_back: ClassVar[bool] = True

    def __init__(
        self,
        upstream: str,
        detach: Callable[[Inbox], None],
        waits_for: Callable[[str], str | None],
        select: Select | None,
        owner: InboxOwner,
        among: OwingInboxes,
    ) -> None:
        super().__init__(upstream, detach, waits_for, select)
        self.owner = owner
        self._owed: dict[int, Owed] = {}
        """All that is not written, in the order it came."""
        self.is_over = False
        """Whether its reader has ended, so that nothing of it is written any more."""
        self.moved = asyncio.Event()
        """Set as something is written, or it is clear that it is not going to be."""
        self._among = among
        among.add(self)
        owner.on_finish(self._settle)

    @property
    def owes(self) -> bool:
        """Whether something is going to be written that is not yet."""
        looking = 0 if self._selecting is None else self._selecting.waiting()
        return not self.is_over and bool(self._owed or self._waiting or looking)

    def comes_again(self) -> bool:
        """Return whether all that is not written comes again, to this reader or the next in its place."""
        owner = self.owner
        if owner.is_disposed or (owner.is_deleted and self._among.next_of(self) is None):
            return False
        return all(each.custody is not None for each in self._owed.values())

    def _put(self, delivery: Delivery) -> None:
        if len(self._accepted) < INBOX_BATCHES:
            if not self._accepted:  # otherwise nobody waits
                self._arrived.set()
            self._accept(delivery)
        else:
            self._waiting.append(delivery)

    def _accept(self, delivery: Delivery) -> None:
        owed = Owed(delivery.batch, delivery.custody)
        self._owed[id(owed)] = owed
        self._accepted.append(owed)
        delivery.flow.close()

    def _next(self) -> Arrival:
        owed: Owed = self._accepted.popleft()
        if self._waiting:
            self._accept(self._waiting.popleft())
        return owed.batch, owed

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Tell the upstream of what is written."""
        for owed in origins:
            if self._owed.pop(id(owed), None) is not None:
                owed.close()
        self.moved.set()

    def take_back(self, origins: Sequence[Any]) -> None:
        """Have batches be read first by whoever goes on."""
        self._accepted.extendleft(reversed(origins))

    def close(self) -> list[int]:
        """Take nothing more. What nobody will read is settled when its pipeline has ended."""
        self.stop()
        lost = [] if self._selecting is None else self._selecting.close()
        while self._waiting:
            self._accept(self._waiting.popleft())
        return lost

    def go_on_with(self, left: Iterable[Owed]) -> None:
        """Have what another inbox could not have written read first; of it, what is wanted here."""
        behind = [*self._accepted]
        self._accepted.clear()
        if self._selecting is None:
            for each in left:
                self._owed[id(each)] = each
                self._accepted.append(each)
        else:
            for each in left:
                self._selecting.take(Delivery(each.batch, OWED_TO_NOBODY, each.custody))
        self._accepted += behind
        self._arrived.set()

    async def _settle(self) -> None:
        """Hand what is not written to the next inbox of its reader; if it was deleted, that is lost.

        Where the reader has only stopped, or failed, it stays owed, to those who keep it.
        """
        owner = self.owner
        self.is_over = True
        self.moved.set()
        next_one = None if owner.is_disposed else self._among.next_of(self)
        is_gone = owner.is_deleted or owner.is_withdrawn
        if next_one is not None and is_gone:
            left, self._owed = [*self._owed.values()], {}
            next_one.go_on_with(left)
        else:
            lost = [each for each in self._accepted if is_gone or each.custody is None]
            for each in () if owner.is_withdrawn else lost:
                owner.report_unread(len(each))
            kept = [each for each in self._accepted if not (is_gone or each.custody is None)]
            self._accepted.clear()
            self._accepted += kept
            for each in [*self._owed.values()]:
                if is_gone or each.custody is None:
                    del self._owed[id(each)]
                    each.close()
        if self._owed:
            owner.on_finish(self._settle)  # it may be deleted, or exchanged, later
        else:
            self._among.remove(self)


class OwingInboxes:
    """All inboxes whose upstreams wait, by the id of the upstream."""

    def __init__(self) -> None:
        self._inboxes: defaultdict[str, list[OwingInbox]] = defaultdict(list)

    def add(self, inbox: OwingInbox) -> None:
        """Take one in."""
        self._inboxes[inbox.upstream].append(inbox)

    def remove(self, inbox: OwingInbox) -> None:
        """Forget one of which nothing is owed any more."""
        inboxes = self._inboxes[inbox.upstream]
        if inbox in inboxes:
            inboxes.remove(inbox)
        if not inboxes:
            del self._inboxes[inbox.upstream]

    def next_of(self, inbox: OwingInbox) -> OwingInbox | None:
        """Return the inbox that its reader has of the same upstream from now on, if it is exchanged."""
        for each in self._inboxes.get(inbox.upstream, ()):
            if each.owner.pipeline == inbox.owner.pipeline and not each.is_over:
                return each
        return None

    def of(self, upstream: str) -> list[OwingInbox]:
        """Return the inboxes that read a pipeline."""
        return self._inboxes.get(upstream, [])

    def owes(self, upstream: str) -> bool:
        """Return whether a reader of a pipeline is going to write something of it."""
        return any(each.owes for each in self.of(upstream))

    async def written(self, upstream: str) -> None:
        """Wait until the readers of a pipeline have written all that it handed them, or have ended."""
        while owing := [each for each in self.of(upstream) if each.owes]:
            owing[0].moved.clear()
            await owing[0].moved.wait()

    def release(self, upstream: str) -> int:
        """Have what buffers of the readers hold go now, if it may; return how many messages that were."""
        return sum(each.owner.release() for each in self.of(upstream))

    def held(self, upstream: str) -> int:
        """Return how many messages buffers of the readers hold on purpose."""
        return sum(each.owner.held() for each in self.of(upstream))
