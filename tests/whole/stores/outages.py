"""Servers that die and come back, and servers that do nothing for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any

from tests.clients import PATIENCE, Gone
from tests.services.server import Service
from tests.whole.stores.kinds.kind import Store

AWAY = 5.0
"""Seconds that a server is away."""
GOES_ON = 3.0
"""Seconds after its return within which messages pass again."""


class Outage:
    """Begins at once, with a kill; the server is started again on its data after a while."""

    def __init__(self, server: Service) -> None:
        self._server = server
        self._returned = threading.Event()
        self._back = 0.0
        server.kill()
        threading.Timer(AWAY, self._return).start()

    def _return(self) -> None:
        self._server.start()
        self._back = monotonic()
        self._returned.set()

    def ended(self) -> float:
        """Wait until the server is back; return the moment at which it was."""
        if not self._returned.wait(PATIENCE):
            raise Gone(f"the server at {self._server.address} has not come back")
        return self._back


@contextmanager
def halted(stores: Mapping[Store, Any]) -> Iterator[None]:
    """Have all these servers do nothing for as long as a block lasts; what is sent to them waits."""
    with ExitStack() as each_halted:
        for store in stores.values():
            each_halted.enter_context(store.halted())
        yield
