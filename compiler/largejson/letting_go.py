"""Letting go of a large batch: to free millions of lists takes as long as to make them.

So when nobody holds it any more, it is cut down slice by slice, and others have their turn in between.
So is a large list or object inside a message, unless somebody else holds it: it is left as it is.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Debt, JsonValue, Several, SharedDebt

T = TypeVar("T")

MANY_CONTAINERS = 100_000
"""Lists and objects of one text from which on the search for cycles among everything waits until
they are gone: to look through millions takes a second. Messages are no cycles."""
LONGEST_SECONDS = 60.0
"""How long it waits for one batch: what failed may lie in a cycle itself, which nothing else frees."""
_NEVER = 2**31 - 1


class _PutOff:
    """The interpreter's full collections put off, until it is ended or its time is over."""

    asking: ClassVar[set[_PutOff]] = set()
    usual: ClassVar[tuple[int, int, int]] = gc.get_threshold()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.asking:
            _PutOff.usual = gc.get_threshold()
            gc.set_threshold(*self.usual[:2], _NEVER)
        self.asking.add(self)
        self._timer = Clock(loop).call_later(LONGEST_SECONDS, self.end)

    def end(self) -> None:
        if self in self.asking:
            self._timer.cancel()
            self.asking.remove(self)
            if not self.asking:
                gc.set_threshold(*self.usual)


class Built(NamedTuple):
    """A list or an object that was put together from slices, and how many items each of them had."""

    container: Any
    slices: list[int]


MESSAGES_AT_ONCE = 512
"""Messages that are let go of in one turn, of a batch that nobody has told of its slices."""
_HELD_BY_US = 3
"""References that the interpreter counts: the tuple's, a name's, and that of the count itself."""


class LargeList(list[T]):
    """A list of many items that is cut down in slices when nobody holds it any more."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__()
        self._loop = loop
        if loop is None:
            with suppress(RuntimeError):  # none runs here
                self._loop = asyncio.get_running_loop()

    def __del__(self) -> None:
        """Come back to life, for the last time, to be cut down. From any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._go_on)
                return
        self._abandoned()

    def _go_on(self) -> None:
        assert self._loop is not None
        if self._shorten():
            self._loop.call_soon(self._go_on)

    def _shorten(self) -> bool:
        """Let a slice go; return whether something is left."""
        del self[-MESSAGES_AT_ONCE:]
        return bool(self)

    def _abandoned(self) -> None:
        """Be let go of in one go: nobody has turns any more."""


class DecodedBatch(LargeList[JsonValue]):
    """A large batch as it was decoded.

    ``slices`` are the numbers of messages that were decoded together, ``built`` are the large lists and
    objects in them, outer ones first. ``there`` is owed until nothing of it is left here, and nobody has
    its messages `under_way`.
    """

    __slots__ = ("_put_off", "built", "containers", "slices", "there")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.slices: list[int] = []
        self.built: list[Built] = []
        self.there = SharedDebt(Several(()), 1)
        self.containers = 0
        """Lists and objects that were counted in it."""
        self._put_off: _PutOff | None = None

    def add_containers(self, containers: int) -> None:
        """Count lists and objects of its text: with many, the search for cycles is put off."""
        self.containers += containers
        if self.containers > MANY_CONTAINERS and self._put_off is None:
            assert self._loop is not None
            self._put_off = _PutOff(self._loop)

    def under_way(self) -> Debt:
        """Count as there until what is returned is settled: others may go on with its messages."""
        self.there.parts += 1
        return self.there

    def _shorten(self) -> bool:
        if self.slices:
            del self[len(self) - self.slices.pop() :]
        elif self.built:
            self._shorten_built()
        else:
            self._abandoned()
            self.there.close()
            return False
        return True

    def _shorten_built(self) -> None:
        container, slices = self.built[0]
        if not slices or sys.getrefcount(container) > _HELD_BY_US:
            del self.built[0]
        elif type(container) is dict:
            for _ in range(min(slices.pop(), len(container))):
                container.popitem()
        else:
            del container[len(container) - slices.pop() :]

    def _abandoned(self) -> None:
        if self._put_off is not None:
            self._put_off.end()
