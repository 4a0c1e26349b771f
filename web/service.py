"""What the endpoints share: the engine, the components, the work that is done for all of them in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.limitedthreads import LimitedThreads
from headrace.compiler.runtime.monitoring.liveevents import Change, Changed
from headrace.web.auth.access import Authenticator, OpenAccess, caller_of
from headrace.web.auth.consolesettings import ConsoleSettings
from headrace.web.engineprotocol import Engine
from headrace.web.files.filing import SavedFiles
from headrace.web.files.reading import Files

P = ParamSpec("P")
T = TypeVar("T")

MOST_WAITING = 100
"""How many wait: what was sent is kept meanwhile, and who comes later gets no answer in time."""
MOST_LOGINS = 1000
"""How many logins wait: their bodies are small, and a thousand of them take a second."""


class TooManyBodies(HeadraceError):
    """So many bodies wait already that one more would not be read in time."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} bodies wait to be read already: try again later")


class ThreadQueue:
    """Does work on bodies in a thread, one after the other, in the order in which they come.

    A body that is made for it takes seconds to read. Two at a time would take twice as long each, and
    the event loop would have a third of the interpreter. ``most_waiting`` may wait for their turn.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def take(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what ``work`` returns when it is its turn.

        Who is cancelled waits no longer, and is forgotten; work that has begun is done to its end
        before it is anybody else's turn.

        Raises:
            TooManyBodies: so many wait already.
        """
        if self._waiting >= self._most_waiting:
            raise TooManyBodies(self._waiting)
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        working = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        working.add_done_callback(self._next)
        return await asyncio.shield(working)

    def _next(self, done: asyncio.Task[T]) -> None:
        self._turn.release()
        if not done.cancelled():
            done.exception()  # somebody has it, or nobody waits for it any more


class SharedWork(Generic[T]):
    """Works an answer out once for all who ask meanwhile, one after the other and never two at a time.

    Who asks while one is worked out gets the next: it is about what there was after the question. So two
    are under way at most, however many ask. It goes on when those who asked have left.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what ``work`` gives, the one of whoever asked first, or raise what it does."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._work(work))
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._next)

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self._turn:
            self._next = None
            return await work()


@dataclass
class Service:
    """The parts of one server, handed to every endpoint."""

    engine: Engine
    catalogue: Catalogue
    clock: Clock
    authenticator: Authenticator = field(default_factory=OpenAccess)
    """Who is let in as whom."""
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    """Of the page that people watch."""
    is_ready: bool = False
    """Whether requests are wanted: from when the server accepts them until it shuts down."""
    reading: ThreadQueue = field(default_factory=ThreadQueue)
    """In which configs are read, and other bodies that are not for everybody."""
    logins: ThreadQueue = field(default_factory=lambda: ThreadQueue(MOST_LOGINS))
    """In which the bodies of logins are read: anybody may post them, and nobody else waits."""
    plans: SharedWork[bytes] = field(default_factory=SharedWork)
    """Where plans of a revert are worked out, each for all who ask for one."""
    describe: Callable[[], bytes] = bytes
    """Gives the description of the served routes; who serves them knows it."""
    files: InitVar[Files | None] = None
    """What it was started from."""

    def __post_init__(self, files: Files | None) -> None:
        self.started_at = self.clock.millis()
        """When it was made. Units: milliseconds since 1970."""
        self.filing = SavedFiles(self.engine, files or Files())
        self.dry_runs = LimitedThreads(self.clock)
        """Where dry runs are done."""
        self.checks = LimitedThreads(self.clock, what="checks")
        """Where configs are checked that somebody is writing: who does waits for no dry run."""

    def changed(self, what: Changed, id: str | None, scope: Mapping[str, Any]) -> None:
        """Tell who listens that something was changed by whoever sent a request (an ASGI scope)."""
        self.engine.tell(Change(what, id, caller_of(scope).username))
