"""Turns of posts: they are answered for a while, and then others on the loop have theirs.

All connections that have sent something are read in one turn of the loop. With many clients that post as
fast as they can, whoever else asks something would wait in each of its steps for a post of every one of
them. So posts are answered for a millisecond, all connections together, and those that are left wait, in
the order they came.

What works off what is posted has turns as well (`compiler/runtime/turns.py`), as long as everybody else's.
Where a chain takes longer for a post than its answer does, the queue would fill and posts would be refused,
by a server that only had to take them more slowly. So a pipeline that is behind is given one post a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from headrace.compiler.clock import Clock

TURN_SECONDS = 0.001
"""What posts may take of one turn of the loop, and the last of them beyond it."""


class Begun(Protocol):
    """A post, as its turn sees it."""

    disconnected: bool
    """Whether its client has left."""
    pipeline: str
    """What it is posted to."""

    def begin(self) -> None:
        """Answer it, or go on to read it."""


class PostTurns:
    """Whose turn it is, of the posts of one server."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._waiting: deque[Begun] = deque()
        self._is_begun = False
        """Whether one is under way, and its end is seen to."""
        self._ends = 0.0
        self._behind: set[str] = set()
        """The pipelines that have been given a post in this turn, and are behind."""
        self.number = 0
        """Which turn it is."""

    def begin(self, post: Begun) -> None:
        """Have a post begun, at once or when it is its turn."""
        now = self._monotonic()
        if not self._is_begun:
            self._begin_turn(now)
        if now > self._ends or post.pipeline in self._behind:
            self._waiting.append(post)
        else:
            post.begin()

    def hold_back(self, pipeline: str) -> None:
        """Begin no more posts to a pipeline in this turn; those to others go on."""
        self._behind.add(pipeline)

    def _begin_turn(self, now: float) -> None:
        self._is_begun = True
        self._ends = now + TURN_SECONDS
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Begin those that wait, while the turn lasts; nothing is to be seen to when nobody does."""
        waiting, behind = self._waiting, self._behind
        self._is_begun = False
        self.number += 1
        behind.clear()
        if not waiting:
            return
        self._begin_turn(self._monotonic())
        held_back: list[Begun] = []
        try:
            while waiting:
                post = waiting.popleft()
                if post.pipeline in behind:
                    held_back.append(post)
                    continue
                if not post.disconnected:
                    post.begin()
                if self._monotonic() > self._ends:
                    break
        finally:
            waiting.extendleft(reversed(held_back))
