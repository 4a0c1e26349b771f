"""The servers that `http` transforms ask, in a play: what they answer is written down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from headrace.authoring.playing.scenario import Replies, ScriptedReply
from headrace.compiler.clock import Clock
from headrace.compiler.httpexchange import HttpReply, HttpTarget, NoReply, TooLate
from headrace.compiler.jsontext import decode, encode


class WrittenExchange:
    """Answers each request with what is written for it, when its time is over."""

    def __init__(self, replies: Replies | None, clock: Clock, target: HttpTarget) -> None:
        self._replies, self._clock, self._target = replies, clock, target

    @asynccontextmanager
    async def __call__(self, body: bytes) -> AsyncIterator[HttpReply]:
        """Wait, and answer."""
        if self._replies is None:
            raise NoReply("the test has no reply for it", is_passing=False)
        answer = self._replies(decode(body))
        if isinstance(answer, str):
            raise NoReply(answer, is_passing=False)
        seconds = self._target.seconds
        if answer.after:
            await self._clock.sleep(min(answer.after, seconds))
        if answer.after > seconds:
            raise TooLate(seconds)
        if answer.is_down:
            raise NoReply("connection refused")
        yield PlayedReply(answer.status, _body_of(answer))

    async def close(self) -> None:
        """Nothing is open."""


def _body_of(answer: ScriptedReply) -> bytes:
    if answer.raw is not None:
        return answer.raw
    return b"" if answer.body is None else encode(answer.body)


class PlayedReply:
    """What is answered."""

    location: str | None = None

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body
        self.reason = HTTPStatus(status).phrase if status in {*HTTPStatus} else ""

    async def beginning(self, most: int) -> bytes:
        """Return the body, or its beginning."""
        return self._body[: most + 1]
