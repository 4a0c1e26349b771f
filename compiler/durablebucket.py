"""A bucket that outlasts the process: it notes what changes, for whoever writes it to the disk.

What changed first is written first, as it is by then: of several writes under one key the last one counts.
So whoever waits for what has changed until now never waits for what changes later.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from headrace.compiler.buckets import Bounds, Bucket, Entry, Values, Watchers
from headrace.compiler.clock import Clock
from headrace.compiler.dividedentries import DividedEntries, DividedEntry
from headrace.compiler.jsontext import encode

log = logging.getLogger("headrace.state")

DIVIDED_FROM = 30_000
"""How many keys a bucket may have at least that is in small mappings: one of fewer grows in 2 ms."""
TOGETHER = 2_048
"""Keys that are taken at once, which takes 2 to 3 ms: a commit may have several times as many."""
TOGETHER_BYTES = 2**20
"""The same in bytes of their values, but for the last one of them."""

_KEY = itemgetter(0)


class KeptEntry(DividedEntry, gc=False):
    """An entry of a durable bucket."""

    size: int = 0
    """What its values took when they were written to the disk last. Units: bytes."""
    is_on_disk: bool = False
    """Whether something of its key may be there, which is to be deleted when it goes."""


KeyChange = tuple[str, int, int, bytes | None]
"""What has become of a key: the key, the number of the change, which is higher than those of all before it,
when it was written in microseconds since 1970, and its values as JSON, None: it is gone. No class: of one,
a million objects take longer to make than what is in them."""


class TakenKeys(list[KeyChange]):
    """What has become of some keys."""

    def __init__(self, changes: list[KeyChange], size: int) -> None:
        """Take how many bytes names and values have."""
        super().__init__(changes)
        self.bytes = size


MOST_UNTAKEN = 16_384
"""Keys that are gone and were never on the disk, since something was written: then they are left out."""


class BucketFill(NamedTuple):
    """How much of a bucket is kept."""

    keys: int
    bytes: int
    """What the keys take on the disk, roughly."""
    oldest: float | None
    """When the first of them was written; None: there is none. Units: seconds since 1970."""


class DurableBucket(Bucket):
    """A bucket that outlasts the process, once somebody has called `keep`."""

    def __init__(
        self,
        name: str,
        bounds: Bounds,
        clock: Clock,
        telling: Watchers | None = None,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        super().__init__(name, bounds, clock, telling, warn)
        most, has_gone = bounds.max_keys, self._has_gone
        self.entries: _Entries | DividedEntries[KeptEntry] = (
            _Entries(has_gone) if most < DIVIDED_FROM else DividedEntries(most, has_gone)
        )
        self.bytes = 0
        """What the values take on the disk of the keys that are held, as they were written last."""
        self._changed: dict[str, int] = {}
        """The number of the last change of each key that is not being written, what changed first first."""
        self._going: set[str] = set()
        """Of those, keys that are gone and are to be deleted on the disk."""
        self._never_there: set[str] = set()
        """Of those, keys that are gone and never were on the disk."""
        self._untaken = 0
        """How many such keys there were since changes were taken last."""
        self._taken = 0
        """How many changes are being written."""
        self._number = 0
        self._noted = self._stored = 0
        """How many changes there were, several of a key that is written once being one; and of those how
        many are on the disk."""
        self._after: deque[tuple[int, Callable[[], None]]] = deque()
        """What is done when so many are."""
        self._again: Iterator[list[str]] | None = None
        """What is to be written again and is not noted yet."""
        self._again_number = 0
        """The number of the last of it that is."""
        self._after_all: list[Callable[[], None]] = []
        """What is done when all of that is on the disk."""
        self._tell_changed: Callable[[], object] = lambda: None
        self._is_told = False

    def keep(self, number: int, changed: Callable[[], object]) -> None:
        """Have somebody be told, once until the next `take`, when something has changed.

        ``number``: that of the last change that is on the disk.
        """
        self._number = max(self._number, number)
        self._tell_changed = changed
        if self._changed:
            self._is_told = True
            changed()

    def restore(self, loaded: dict[str, KeptEntry]) -> None:
        """Take in what was on the disk, behind what is there, in the order it was written in.

        The mapping is given away.
        """
        entries = self.entries
        if self._noted:  # something was written before this was read
            for key in [key for key in loaded if key in entries]:
                del loaded[key]
                since = entries[key]
                assert isinstance(since, KeptEntry)
                since.is_on_disk = True
        entries.take_in(loaded)
        self.bytes += sum([entry.size for entry in loaded.values()])

    def forget(self, keys: Iterable[str]) -> None:
        """Have keys be deleted on the disk that were not taken in."""
        self._note(keys)

    def take(self, most: int = TOGETHER) -> TakenKeys:
        """Return what has changed, so many keys at most.

        All that was taken since ends together, with `stored` or `put_back`.
        """
        self._note_again(most)
        taken: list[KeyChange] = []
        size = room = grown = 0
        changed, began = self._changed, self._clock.micros_of(0.0)
        find: Callable[[str], KeptEntry | None] = self.entries.get  # type: ignore[assignment]
        last, at = 0.0, began
        for key, number in islice(changed.items(), most):
            entry = find(key)
            if entry is None:
                self._never_there.discard(key)
                self._going.discard(key)
                taken.append((key, number, 0, None))
                continue
            entry.is_on_disk = True
            if entry.at != last:  # many are written at one moment
                last = entry.at
                at = began + round(last * 1e6)
            try:
                values = encode(entry.values)
            except (ValueError, TypeError, RecursionError) as cause:
                self._warn(
                    f"bucket '{self.name}': key {key!r} is not kept, as it is no JSON: {cause}"
                )
                taken.append((key, number, at, None))
                continue
            length = len(values)
            grown += length - entry.size
            size += length
            room += len(key)
            entry.size = length
            taken.append((key, number, at, values))
            if size >= TOGETHER_BYTES:
                break
        self.bytes += grown
        if len(taken) == len(changed):
            changed.clear()
        else:
            for each in taken:
                del changed[each[0]]
        self._is_told = False
        self._untaken = 0
        self._taken += len(taken)
        return TakenKeys(taken, size + room)

    def stored(self, taken: Collection[KeyChange]) -> None:
        """Take note that changes are on the disk; have done what waits for them."""
        self._stored += len(taken)
        self._taken = 0
        while self._after and self._after[0][0] <= self._stored:
            action = self._after.popleft()[1]
            try:
                action()
            except Exception:  # a reader's fault must not become the disk's
                log.exception("bucket '%s': what waited for the disk broke", self.name)
        if self._changed or self._again is not None:
            self._tell_once()

    def put_back(self, taken: Iterable[KeyChange]) -> None:
        """Have changes be written later, before those that came since."""
        back = {key: number for key, number, _, _ in taken}
        self._never_there.difference_update(back)
        for key in back:
            if isinstance(entry := self.entries.get(key), KeptEntry):
                entry.is_on_disk = True
            else:
                self._going.add(key)
        self._taken = 0
        self._changed = back | self._changed
        self._noted = self._stored + len(self._changed)
        self._after = deque((self._noted, action) for _, action in self._after)
        if self._changed or self._again is not None:
            self._tell_once()

    def change_all(self) -> None:
        """Have all that it holds be written again, some with each commit.

        It is numbered as if it were noted now: what is written meanwhile was written later.
        """
        self._again, self._again_number = self.entries.unwritten(), self._number
        self._number += len(self.entries)
        self._note_again(len(self._changed) + 1)
        if not self._is_told:
            self._tell_once()

    def _note_again(self, most: int) -> None:
        """Note what is to be written again, until there is enough for a commit."""
        changed = self._changed
        while self._again is not None and len(changed) < most:
            if (keys := next(self._again, None)) is None:
                self._again = None
                self._after += [(self._noted, action) for action in self._after_all]
                self._after_all.clear()
                return
            before, first = len(changed), self._again_number + 1
            self._again_number += len(keys)
            changed.update(zip(keys, range(first, first + len(keys)), strict=True))
            self._noted += len(changed) - before

    def fill(self) -> BucketFill:
        """Return how much is kept, as if all that has changed were on the disk."""
        oldest = next(iter(self.entries.values()), None)
        since = None if oldest is None else self._clock.micros_of(oldest.at) / 1e6
        return BucketFill(len(self.entries), self.bytes, since)

    @property
    def is_stored(self) -> bool:
        """Whether all that has changed until now is on the disk."""
        return self._stored == self._noted and self._again is None

    def when_stored(self, action: Callable[[], None]) -> None:
        """Do something when all that has changed until now is on the disk: at once, if it is."""
        if self.is_stored:
            action()
        elif self._again is not None:
            self._after_all.append(action)
        else:
            self._after.append((self._noted, action))

    def writer(self, reads: Mapping[str, str]) -> Callable[[Mapping[str, Any]], None]:
        """Return what `Bucket.writer` does, which notes what it writes."""
        write, note = super().writer(reads), self._note

        def write_and_note(rows: Mapping[str, Any]) -> None:
            note(reversed([*rows]))
            write(rows)

        return write_and_note

    def _write(self, writes: Collection[tuple[str, Values]]) -> None:
        super()._write(writes)
        self._note(map(_KEY, writes))

    def _add(self, key: str, values: dict[str, Any], now: float) -> None:
        if len(self.entries) >= self.bounds.max_keys:
            self._make_room(now)
        self.entries[key] = KeptEntry(values, now, is_on_disk=key in self._going)
        self._going.discard(key)
        self._never_there.discard(key)

    def _has_gone(self, key: str, entry: Entry) -> None:
        self._note((key,))
        if isinstance(entry, KeptEntry):
            self.bytes -= entry.size
            if entry.is_on_disk:
                self._going.add(key)
            else:
                self._never_there.add(key)
                self._untaken += 1
                if self._untaken >= MOST_UNTAKEN:
                    self._forget_those()

    def _forget_those(self) -> None:
        """Leave out what has not to be deleted: a disk that takes nothing would have it grow for ever.

        What waits for changes waits for all there are then, as it cannot be told which came before it.
        """
        for key in self._never_there:
            self._changed.pop(key, None)
        self._never_there.clear()
        self._untaken = 0
        self._noted = self._stored + self._taken + len(self._changed)
        self._after = deque((self._noted, action) for _, action in self._after)

    def _note(self, keys: Iterable[str]) -> None:
        changed, number, noted = self._changed, self._number, [*keys]
        before = len(changed)
        self._number = number + len(noted)
        if self._never_there:  # what is about to be written again is not left out
            self._never_there.difference_update(noted)
        changed.update(zip(noted, range(number + 1, self._number + 1), strict=True))
        self._noted += len(changed) - before
        if not self._is_told and changed:
            self._tell_once()

    def _tell_once(self) -> None:
        self._is_told = True
        self._tell_changed()


class _Entries(OrderedDict[str, Entry]):
    """Entries that tell of what goes to make room, or as it has expired."""

    def __init__(self, has_gone: Callable[[str, Entry], object]) -> None:
        super().__init__()
        self._has_gone = has_gone

    def popitem(self, last: bool = True) -> tuple[str, Entry]:
        """Take out the last entry, or the first, and tell of it."""
        key, entry = super().popitem(last)
        self._has_gone(key, entry)
        return key, entry

    def take_in(self, entries: dict[str, KeptEntry]) -> None:
        """Put in keys that are new, in their order, as the last ones."""
        self.update(entries)

    def unwritten(self) -> Iterator[list[str]]:
        """Yield the keys in their order, all of them: take them at once."""
        return iter([[*self]])
