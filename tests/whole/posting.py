"""A client that posts numbered messages to a pipeline, at a bounded rate."""

from __future__ import annotations

import threading

from tests.clients import PATIENCE, Client
from tests.server import Server


class Posts(threading.Thread):
    """Posts ``{"n": 0}``, ``{"n": 1}``, ... one at a time until it is stopped."""

    def __init__(self, server: Server, pipeline: str, *, rate: int = 50) -> None:
        super().__init__(daemon=True)
        self._client, self._pipeline, self._pause = Client(server.port), pipeline, 1 / rate
        self._stopping = threading.Event()
        self.accepted: set[int] = set()
        self.refused: list[tuple[int, int, bytes]] = []
        """What was not accepted: number, status and body."""
        self.offered = 0
        self.start()

    def run(self) -> None:
        """Post."""
        while not self._stopping.wait(self._pause):
            number, self.offered = self.offered, self.offered + 1
            answer = self._client.post(self._pipeline, {"n": number})
            if answer.status == 202:
                self.accepted.add(number)
            else:
                self.refused.append((number, answer.status, answer.body))
        self._client.close()

    def stop(self) -> set[int]:
        """Post no more; return what was accepted."""
        self._stopping.set()
        self.join(PATIENCE)
        return self.accepted
