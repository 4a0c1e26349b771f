"""What the endpoints share: the engine, the components, and whether the server is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.runtime.dryrun.threads import LimitedThreads
from headrace.web.auth.access import Authenticator, OpenAccess
from headrace.web.engineprotocol import Engine
from headrace.web.files.filing import SavedFiles
from headrace.web.files.reading import Files
from headrace.web.sharing import SharedWork
from headrace.web.threadqueue import MOST_LOGINS, ThreadQueue


@dataclass
class Service:
    """The parts of one server, handed to every endpoint."""

    engine: Engine
    catalogue: Catalogue
    clock: Clock
    authenticator: Authenticator = field(default_factory=OpenAccess)
    """Who is let in as whom."""
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
        self.filing = SavedFiles(self.engine, files or Files())

    @cached_property
    def dry_runs(self) -> LimitedThreads:
        """Where dry runs are done."""
        return LimitedThreads(self.clock)
