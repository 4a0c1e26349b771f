"""A pipeline that is written through all the while that its store is in trouble, and after that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.server import Server
from tests.whole.aside import Aside
from tests.whole.posting import Posts
from tests.whole.stores.kinds.kind import Store
from tests.whole.stores.sightings import Sightings
from tests.whole.stores.told import failed, reasons, wait_until_failed, wait_until_through

FAILURES = 10
"""How many batches fail before somebody mends it."""


class Line:
    """One message after the other is posted to a pipeline and stored in a place."""

    def __init__(
        self, aside: Aside, server: Server, pipeline: str, kind: Store, store: Any, place: str
    ) -> None:
        self.pipeline, self._server = pipeline, server
        self._gone: set[int] = set()
        self._seen = Sightings(aside, kind, store, place)
        self._posts = Posts(server, pipeline)
        self._accepted: set[int] = set()

    def wait_until_writing(self) -> None:
        """Wait until something is stored."""
        self._seen.wait_until_more(FAILURES)

    def begin(self, change: Callable[[], Iterable[int] | None]) -> None:
        """Bring trouble; ``change`` may return numbers that are stored no more."""
        self._gone = {*(change() or ())}

    def end(self, change: Callable[[], object], failures: int = FAILURES) -> None:
        """Mend it after so many failures; return when what is posted is stored again."""
        wait_until_failed(self._server, self.pipeline, failures)
        change()
        self._seen.wait_from(self._posts.offered)
        self._accepted = self._posts.stop()
        wait_until_through(self._server, self.pipeline, len(self._accepted))

    @property
    def failures(self) -> int:
        """How many batches have failed."""
        return failed(self._server, self.pipeline)

    def lost(self) -> int:
        """Return how many messages were accepted and are not stored."""
        return len(self._accepted - self._seen.final().keys() - self._gone)

    def reason(self) -> str:
        """Return the only reason that there was."""
        [reason] = reasons(self._server, self.pipeline)
        return reason
