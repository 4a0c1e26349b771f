"""The client: posts bodies over connections that are kept, or asks for something again and again, and
counts what it is answered.

A process of its own, so that it takes no time from the server: ``python -m bench.load PLAN``, with
the plan as JSON; what came of it is printed as JSON. Closed: each connection posts again when it is
answered. Open, with a ``rate``: as many posts a second as that, whether or not they are answered 202.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import cast

import uvloop

from bench import messages

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to post: so many posts at most, for so many seconds at most."""

    port: int
    path: str
    size: int
    posts: int
    seconds: float = 60.0
    connections: int = 16
    rate: float | None = None
    kind: str = "readings"
    """What the bodies hold (`bench/messages.py`)."""
    method: str = "POST"
    """A GET has no body, and ``size`` says nothing."""
    headers: dict[str, str] = field(default_factory=dict)
    """Further ones, for every request."""


@dataclass(slots=True)
class Outcome:
    """What came of it: answers by status, and the messages of the accepted posts."""

    statuses: dict[str, int] = field(default_factory=dict)
    accepted: int = 0
    slowest: float = 0.0
    """Seconds of the slowest answer."""
    p99: float = 0.0
    """Seconds that 99 of 100 answers took at most."""
    seconds: float = 0.0


class Client:
    """All connections together."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.statuses: Counter[bytes] = Counter()
        self.accepted = 0
        self.waits: list[float] = []
        self.loop = asyncio.get_running_loop()
        self.over = asyncio.Event()
        self._left = plan.posts
        self._requests = cycle(_requests(plan))
        self._idle: list[Connection] = []
        self._began = self.loop.time()
        self._posted = self._answered = 0
        self._open: list[Connection] = []

    async def run(self) -> Outcome:
        """Post, until all is posted and answered or the time is over."""
        for _ in range(self.plan.connections):
            _, connection = await self.loop.create_connection(
                lambda: Connection(self), HOST, self.plan.port
            )
            self._open.append(connection)
        self._began = self.loop.time()
        self._idle = list(self._open)
        self.pace()
        try:
            async with asyncio.timeout(self.plan.seconds):
                await self.over.wait()
        except TimeoutError:
            self._left = 0
            await self._settle()
        for connection in self._open:
            connection.transport.close()
        waits = sorted(self.waits) or [0.0]
        return Outcome(
            {status.decode(): count for status, count in sorted(self.statuses.items())},
            self.accepted,
            waits[-1],
            waits[int(len(waits) * 0.99)],
            self.loop.time() - self._began,
        )

    async def _settle(self) -> None:
        """Wait for the answers that are still owed: an accepted post has to be counted."""
        if self._answered < self._posted:
            async with asyncio.timeout(30):
                await self.over.wait()

    def pace(self) -> None:
        """Post on idle connections: all of them, or as many as the rate allows by now."""
        due = self._left
        if self.plan.rate is not None:
            due = int((self.loop.time() - self._began) * self.plan.rate) - self._posted
            if self._left:
                self.loop.call_later(0.005, self.pace)
        while self._idle and self._left and due > 0:
            due -= 1
            self._left -= 1
            self._posted += 1
            self._idle.pop().post(next(self._requests))

    def answered(self, connection: Connection, status: bytes, accepted: int, took: float) -> None:
        """Count an answer, and post again on that connection."""
        self.statuses[status] += 1
        self.accepted += accepted
        self.waits.append(took)
        self._answered += 1
        if self._left and self.plan.rate is None:
            self._left -= 1
            self._posted += 1
            connection.post(next(self._requests))
            return
        self._idle.append(connection)
        if not self._left and self._answered == self._posted:
            self.over.set()


class Connection(asyncio.Protocol):
    """One connection: one post at a time."""

    transport: asyncio.Transport

    def __init__(self, client: Client) -> None:
        self._client = client
        self._received = b""
        self._asked = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way out."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own

    def post(self, request: bytes) -> None:
        """Send a request."""
        self._asked = time.monotonic()  # the loop's is cut to milliseconds
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Read an answer; most come in one piece."""
        received = self._received + data
        head, parted, body = received.partition(b"\r\n\r\n")
        if not parted or len(body) < _length(head):
            self._received = received
            return
        self._received = b""
        status = head[9:12]
        accepted = int(body[body.index(b":") + 1 : -1]) if status == b"202" else 0
        took = time.monotonic() - self._asked
        self._client.answered(self, status, accepted, took)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count a connection that ends on its own as an answer nobody expects."""
        if self._asked and not self._client.over.is_set():
            self._client.statuses[b"cut"] += 1


def _length(head: bytes) -> int:
    at = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[at:].split(b"\r\n", 1)[0])


def _requests(plan: Plan) -> list[bytes]:
    given = "".join(f"{name}: {value}\r\n" for name, value in plan.headers.items())
    head = f"{plan.method} {plan.path} HTTP/1.1\r\nHost: {HOST}\r\n{given}".encode()
    if plan.method == "GET":
        return [head + b"\r\n"]
    return [
        b"%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (head, len(body), body)
        for body in messages.bodies(plan.size, kind=plan.kind)
    ]


async def _run(plan: Plan) -> Outcome:
    return await Client(plan).run()


def main(plan: str) -> None:
    """Carry out a plan and print what came of it."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(_run(Plan(**json.loads(plan)))))))


if __name__ == "__main__":
    main(sys.argv[1])
