"""Posts to connections that answer them in the protocol, packet by packet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.compiler.clock import Clock
from headrace.web.app import Application
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import PostAnswers
from headrace.web.process.postturns import TURN_SECONDS
from headrace.web.process.protocol import Protocol
from headrace.web.resources.ingest import Ingest
from headrace.web.service import Service
from tests.web.process.wires import House, looked_at, standing, steps, wire_of
from tests.web.resources.ingest.posting_to import LARGE_BODY, PATH, Asked

LINE = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
LARGE_POST = LINE + b"content-length: %d\r\n\r\n" % len(LARGE_BODY) + LARGE_BODY


def one(number: int, *fields: bytes) -> bytes:
    """Return a post of one message that is a number."""
    body = b"%d" % number
    lines = b"".join(each + b"\r\n" for each in (*fields, b"content-length: %d" % len(body)))
    return LINE + lines + b"\r\n" + body


def entered(asked: Asked, application: object = None) -> Protocol:
    """Return a connection whose posts are answered in the protocol, and all else by an application."""
    clock = Clock(asyncio.get_running_loop())
    service = Service(asked, None, clock)  # type: ignore[arg-type]
    house = House(ConnectionLimit(), application or Application(service))  # type: ignore[arg-type]
    return house.enter(PostAnswers(Ingest(service), standing(clock)))


def in_turns(asked: Asked, posts_a_turn: int) -> Callable[[], Protocol]:
    """Return what opens connections to one server, on whose clock a post takes some of a turn."""
    clock = Clock(asyncio.get_running_loop())
    service = Service(asked, None, clock)  # type: ignore[arg-type]
    house = House(ConnectionLimit(), Application(service))
    posts = PostAnswers(Ingest(service), looked_at(clock, TURN_SECONDS / (posts_a_turn - 0.5)))
    return lambda: house.enter(posts)


def statuses(connection: Protocol) -> list[int]:
    return [int(each[:3]) for each in wire_of(connection).written.split(b"HTTP/1.1 ")[1:]]


async def until(connection: Protocol, count: int) -> None:
    """Wait for so many answers."""
    async with asyncio.timeout(30):
        while len(statuses(connection)) < count:
            await steps(1)


def taken(asked: Asked) -> list[int]:
    return [batch[0] for batch, _ in asked.offered]
