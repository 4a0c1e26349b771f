"""Buckets: named, bounded state that pipelines remember in and recall from.

A bucket is a mapping from key to values, in memory, shared by every pipeline that names it. All who
touch it do so on the loop's thread and never in the middle of each other's work, so a merge is
atomic and needs no lock.

Keys expire lazily. What has expired counts as absent at once, and a few of the expired are let go of
with every merge, so that no single one pays for a million.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import groupby
from typing import Any, Protocol

import msgspec

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import JsonValue, parts

log = logging.getLogger("headrace.state")

WHOLE = ""
"""The key of what concerns a bucket as a whole."""

Values = Mapping[str, JsonValue]
"""What is remembered under one key: name to value."""

OnWrite = Callable[[], None]
"""Somebody who wants to know of writes."""

SPARE = 100
"""How many expired keys a merge lets go of besides one for each key that it writes."""
MOMENT = 1000
"""Keys of one merge that are written at the same moment: writing more takes a while."""
_HALF_A_TICK = 0.5e-6

# A merge of always the same names, as source. It makes no object for a key, which takes longest.
_WRITER = """\
def write(rows, find=find, move=move):
    if len(rows) > MOST or not expire(len(rows) + SPARE):
        return merge({{key: {{{pairs}}} for key, m in reversed(rows.items())}})
    now = monotonic()
    for key, m in reversed(rows.items()):
        entry = find(key)
        if entry is None:
            add(key, {{{pairs}}}, now)
        else:
            values = entry.values
            {writes}
            entry.at = now
            move(key)
    if watchers:
        tell(rows)
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a bucket holds, and for how long.

    Units: ``idle_seconds`` since a key was last written; None: it never expires.
    ``is_durable``: it outlasts the process.
    """

    max_keys: int = 10_000
    idle_seconds: int | None = None
    is_durable: bool = False


# Without the header that the garbage collector wants of a container: JSON is no cycle, and a million
# more objects to look through would stop the server each time.
class Entry(msgspec.Struct, gc=False):
    """What is remembered under one key, and when it was last written (`Clock.monotonic`)."""

    values: dict[str, JsonValue]
    at: float


class KeyedEntries(Protocol):
    """Entries by key, in the order of the last write: an `OrderedDict`, or what takes its place."""

    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: str, /) -> Entry: ...
    def __setitem__(self, key: str, entry: Any, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __reversed__(self) -> Iterator[str]: ...
    def get(self, key: str, /) -> Entry | None: ...
    def move_to_end(self, key: str) -> None: ...
    def popitem(self, last: bool = True) -> tuple[str, Entry]: ...
    def items(self) -> Iterable[tuple[str, Entry]]: ...
    def values(self) -> Iterable[Entry]: ...


class Bucket:
    """One bucket. Reading never refreshes a key; only a write does.

    ``entries`` is in the order of the last write, the oldest first, and may still hold what has
    expired: whoever reads it directly compares `Entry.at` with `cutoff`. Nobody but the bucket
    writes to it. What a write costs does not grow with the number of keys.
    """

    def __init__(
        self,
        name: str,
        bounds: Bounds,
        clock: Clock,
        telling: Watchers | None = None,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        self.name = name
        self.bounds = bounds
        self.evictions = 0
        """How many keys had to go for a new one before they had expired."""
        self.entries: KeyedEntries = OrderedDict()
        # A whole number may be larger than every double; this one is as long as for ever.
        self._idle = math.inf if bounds.idle_seconds is None else min(bounds.idle_seconds, 2**63)
        self._clock = clock
        self._watchers: dict[str, dict[object, OnWrite]] = {}
        self._telling = telling or Watchers()
        self._warn = warn

    def __len__(self) -> int:
        """Return how many keys are held; what has expired is let go first."""
        self.expire(len(self.entries))
        return len(self.entries)

    def cutoff(self) -> float:
        """Return the `Entry.at` up to which an entry has expired by now."""
        return self._cutoff(self._clock.monotonic())

    def get(self, key: str) -> Values | None:
        """Return what is remembered under a key, None when nothing is or it has expired.

        It is the entry's own: later writes show in it.
        """
        entry = self.entries.get(key)
        return None if entry is None or entry.at <= self.cutoff() else entry.values

    def merge(self, writes: Mapping[str, Values]) -> None:
        """Write names under keys, all at once; other names of those keys stay as they are.

        A key that is new to a full bucket takes the place of the one that was written longest ago,
        which is counted, and warned of the first time. Whoever watches one of the keys is told when all
        of it is written.
        """
        self.merge_in_turn(writes.items())

    def merge_in_turn(self, writes: Collection[tuple[str, Values]]) -> None:
        """Write as `merge` does, but one after the other: a key may come several times.

        It may have to go in between. Where `displaces` says that none has to, `merge` comes to the same
        with each key at the place of its last write, and takes less.
        """
        self.expire(len(writes) + SPARE)
        for some in [writes] if len(writes) <= MOMENT else parts(writes, MOMENT):
            self._write(some)
        if self._watchers:
            self._tell(dict(writes))

    def merging(self, writes: Sequence[tuple[str, Values]]) -> Iterator[None]:
        """Write as `merge_in_turn` does, some at a time: pause after each, for others to have a turn.

        Who watches is told when all of it is written. What others write meanwhile comes in between.
        """
        watched: dict[str, None] = {}
        for part in parts(writes):
            self.expire(len(part) + SPARE)
            self._write(part)
            watched |= {key: None for key, _ in part if key in self._watchers}
            yield
        self._tell(watched)

    def is_crowded_by(self, keys: Collection[str]) -> bool:
        """Return whether `displaces` may hold; without looking at each key."""
        return len(keys) + len(self.entries) > self.bounds.max_keys

    def displaces(self, keys: Collection[str]) -> bool:
        """Return whether some key may have to go when these are written."""
        entries, room = self.entries, self.bounds.max_keys - len(self.entries)
        return len(keys) > room and sum(key not in entries for key in keys) > room

    def writer(self, reads: Mapping[str, str]) -> Callable[[Mapping[str, Any]], None]:
        """Return a quicker `merge` for whoever always writes the same names.

        ``reads`` has for each name the expression that reads its value from ``m``. What is written is
        given as such an ``m`` for each key, the key to be written last first. Where an expression
        raises, some keys are written by then and nobody has been told: merge all of it again.
        """
        source = _WRITER.format(
            pairs=", ".join(f"{name!r}: {read}" for name, read in reads.items()),
            writes="; ".join(f"values[{name!r}] = {read}" for name, read in reads.items()),
        )
        namespace: dict[str, Any] = {
            "MOST": min(MOMENT, self.bounds.max_keys),  # no key of a merge displaces another one
            "SPARE": SPARE,
            "expire": self.expire,
            "merge": self.merge,
            "monotonic": self._clock.monotonic,
            "find": self.entries.get,
            "add": self._add,
            "move": self.entries.move_to_end,
            "watchers": self._watchers,
            "tell": self._tell,
        }
        exec(source, namespace)
        write: Callable[[Mapping[str, Any]], None] = namespace["write"]
        return write

    def watch(self, key: str, told: OnWrite) -> Callable[[], None]:
        """Have ``told`` called after every write under ``key``; return what ends that."""
        watching = self._watchers.setdefault(key, {})
        watcher = object()
        watching[watcher] = told

        def leave() -> None:
            watching.pop(watcher, None)
            if not watching and self._watchers.get(key) is watching:
                del self._watchers[key]

        return leave

    def expire(self, most: int) -> bool:
        """Let go of at most so many expired keys, the oldest first; return whether none is left."""
        if self.bounds.idle_seconds is None:
            return True
        cutoff, entries = self.cutoff(), self.entries
        for _ in range(most):
            oldest = next(iter(entries.values()), None)
            if oldest is None or oldest.at > cutoff:
                return True
            entries.popitem(last=False)
        return not entries

    def newest(self, most: int) -> list[tuple[str, dict[str, JsonValue], float]]:
        """Return key, values and time of writing of the latest entries, newest first, ties by key.

        They are copies: nothing that is written later shows in them.
        """
        self.expire(len(self.entries))
        entries, found = self.entries, list[str]()
        for _, keys in groupby(reversed(entries), lambda key: round(entries[key].at * 1e6)):
            found += nsmallest(most - len(found), keys)
            if len(found) >= most:
                break
        return [(key, dict(entries[key].values), entries[key].at) for key in found]

    def keys(self) -> list[str]:
        """Return the keys in no order, those that have expired included.

        Of a million that takes 40 ms; in the order of the last write it would take one or two seconds.
        """
        entries = self.entries
        return [*(dict.keys(entries) if isinstance(entries, OrderedDict) else entries)]

    def _cutoff(self, now: float) -> float:
        # 8.2 - 3 is less than 5.2: without the half tick an entry would outlive its own second.
        return now - self._idle + _HALF_A_TICK

    def _write(self, writes: Collection[tuple[str, Values]]) -> None:
        entries = self.entries
        now = self._clock.monotonic()
        cutoff = self._cutoff(now)
        for key, values in writes:
            entry = entries.get(key)
            if entry is None:
                self._add(key, dict(values), now)
                continue
            if entry.at > cutoff:
                entry.values.update(values)
            else:
                entry.values = dict(values)
            entry.at = now
            entries.move_to_end(key)

    def _add(self, key: str, values: dict[str, JsonValue], now: float) -> None:
        """Take in a new key; in a full bucket it takes the place of the oldest."""
        if len(self.entries) >= self.bounds.max_keys:
            self._make_room(now)
        self.entries[key] = Entry(values, now)

    def _make_room(self, now: float) -> None:
        _, oldest = self.entries.popitem(last=False)
        if oldest.at > self._cutoff(now):  # else it had expired anyway
            if not self.evictions:
                self._warn(
                    f"bucket '{self.name}' is full (max_keys is {self.bounds.max_keys:,}): from now "
                    "on each new key takes the place of the one that was written longest ago"
                )
            self.evictions += 1

    def _tell(self, writes: Mapping[str, Any]) -> None:
        self._telling.tell(
            partial(self._tell_one, key, self._watchers[key], each)
            for key in sorted(writes.keys() & self._watchers.keys())
            for each in self._watchers[key]
        )

    def _tell_one(self, key: str, watching: Mapping[object, OnWrite], watcher: object) -> None:
        if watcher in watching:  # else it left while another one was told
            try:
                watching[watcher]()
            except Exception:  # a reader's fault must not become the writer's
                log.exception("bucket '%s': a reader of '%s' broke", self.name, key)


class Watchers:
    """Tells watchers one after the other, also those of what a watcher writes while it is told.

    So a row of gates, each of which opens the next one, is no deeper on the stack than a single one.
    """

    def __init__(self) -> None:
        self._waiting: deque[OnWrite] = deque()
        self._is_running = False

    def tell(self, watchers: Iterable[OnWrite]) -> None:
        """Tell them after those that wait already; within `tell`, leave that to the one that is at it."""
        self._waiting += watchers
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            self._is_running = False


class Buckets:
    """The buckets that are declared, by name. ``warn`` takes what they have to say."""

    def __init__(self, clock: Clock, warn: Callable[[str], None] = log.warning) -> None:
        self._clock = clock
        self._telling = Watchers()
        self._warn = warn
        self._buckets: dict[str, Bucket] = {}

    def declare(self, declared: Mapping[str, Bounds]) -> Callable[[], None]:
        """Have exactly these buckets, and return what brings back those from before.

        One whose bounds stay the same keeps what it holds.
        """
        return self.install(self.redeclared(declared))

    def install(self, other: Buckets) -> Callable[[], None]:
        """Have exactly the buckets of another, and return what brings back those from before."""
        before = copy(self)
        self.become(other)
        return partial(self.become, before)

    def redeclared(self, declared: Mapping[str, Bounds]) -> Buckets:
        """Return what `declare` would make of these, and change nothing."""
        other, before = copy(self), self._buckets
        other._buckets = {
            name: before[name]
            if name in before and before[name].bounds == bounds
            else self._made(name, bounds)
            for name, bounds in declared.items()
        }
        return other

    def _made(self, name: str, bounds: Bounds) -> Bucket:
        kind = Bucket
        if bounds.is_durable:
            from headrace.compiler.durablebucket import DurableBucket

            kind = DurableBucket
        return kind(name, bounds, self._clock, self._telling, self._warn)

    def become(self, other: Buckets) -> None:
        """Have exactly the buckets of another."""
        self._buckets = other._buckets

    def get(self, name: str) -> Bucket | None:
        """Return a bucket, or None if none of that name is declared."""
        return self._buckets.get(name)

    def names(self) -> list[str]:
        """Return the names of the buckets, in order."""
        return sorted(self._buckets)

    def __iter__(self) -> Iterator[Bucket]:
        """Yield the buckets in the order of their names."""
        return iter([self._buckets[name] for name in self.names()])
