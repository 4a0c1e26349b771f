"""Who posts numbers in bundles, at a steady pace, to one server after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException

from tests.clients import PATIENCE, Client
from tests.server import Server
from tests.whole.bridging.bridges import RATE
from tests.whole.bridging.targets import TOGETHER
from tests.whole.durable.customers import PIPELINE, wait_until


class Steadily:
    """Posts ``[{"n": 0}, ...]``, so many together, and then those that follow, at most `RATE` a second."""

    def __init__(self, rate: int = RATE) -> None:
        self._pause = TOGETHER / rate
        self.offered = 0
        self.confirmed: list[int] = []
        """What was answered 202, in order."""
        self.refused: list[int] = []
        """The statuses of other answers."""

    @contextmanager
    def posting(self, server: Server) -> Iterator[None]:
        """Have it post for as long as the block lasts, or the server."""
        stopping = threading.Event()
        thread = threading.Thread(target=self._post, args=(server.port, stopping), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(PATIENCE)

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more were answered 202."""
        wanted = len(self.confirmed) + count
        wait_until(lambda: len(self.confirmed) >= wanted, f"{wanted} that are answered 202")

    def _post(self, port: int, stopping: threading.Event) -> None:
        client = Client(port)
        with suppress(OSError, HTTPException):
            while not stopping.wait(self._pause):
                bundle = range(self.offered, self.offered + TOGETHER)
                self.offered = bundle.stop
                answer = client.post(PIPELINE, [{"n": number} for number in bundle])
                if answer.status == 202:
                    self.confirmed.extend(bundle)
                else:
                    self.refused.append(answer.status)
        client.close()
