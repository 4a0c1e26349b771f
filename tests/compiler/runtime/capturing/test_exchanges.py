"""Exchanges of `http` transforms in a capture: content and reply, and no credential."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.httpexchange import HttpReply, HttpTarget, NoReply
from headrace.compiler.runtime.capturing.captures import CaptureRequest, Captures
from headrace.compiler.runtime.capturing.recorder import recorded
from headrace.compiler.schema.urls import HttpUrl
from tests.compiler.runtime.capturing.capturing import text_of
from tests.virtual import virtual

CREDENTIAL = "hunter2-and-more"


class Answers:
    """A server that answers in turn, and repeats what it was sent where it refuses."""

    def __init__(self, clock: Clock, *answers: tuple[int, bytes] | NoReply) -> None:
        self._clock, self._answers = clock, [*answers]

    def to(self, target: HttpTarget) -> Answers:
        return self

    @asynccontextmanager
    async def __call__(self, body: bytes) -> AsyncIterator[HttpReply]:
        await self._clock.sleep(0.25)
        answer = self._answers.pop(0)
        if isinstance(answer, NoReply):
            raise answer
        yield Reply(*answer)

    async def close(self) -> None:
        """Nothing is open."""


class Reply:
    """One answer."""

    reason, location = "", None

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body

    async def beginning(self, most: int) -> bytes:
        return self._body[: most + 1]


async def asked(
    *answers: tuple[int, bytes] | NoReply, most: int = 1000, redact: Sequence[str] = ()
) -> tuple[list[Any], list[dict[str, Any]], bytes]:
    """Ask as often as there are answers; return what came, the records, and the whole capture."""
    clock = Clock(asyncio.get_running_loop())
    captures = Captures(clock)
    server = Answers(clock, *answers)
    address = HttpUrl().read(f"https://ann:{CREDENTIAL}@server.example.org/x")
    client = HttpClient(
        address,
        clock=clock,
        hide=lambda value: None,
        redact=lambda text: text,
        headers={"Authorization": f"Bearer {CREDENTIAL}"},
        exchange=recorded(captures, "p", "transforms[0]", server.to),
    )
    capture = captures.begin(CaptureRequest(seconds=60, redact=redact))
    came = list[Any]()
    for _ in answers:
        try:
            came.append(await client.ask(b'[{"n":1}]', most))
        except (BatchFailed, Unreachable) as cause:
            came.append(type(cause))
    text = await text_of(capture)
    lines = [json.loads(line) for line in text.splitlines() if line][1:-1]
    return came, lines, text


@virtual
async def test_a_reply_is_captured_with_what_it_answers() -> None:
    came, [line], _ = await asked((200, b'[{"n":1,\n"site":"north"}]'))

    assert came == [b'[{"n":1,\n"site":"north"}]']
    assert line == {
        "at": 0.0,
        "reply": {
            "of": "p.transforms[0]",
            "request": [{"n": 1}],
            "status": 200,
            "seconds": 0.25,
            "body": [{"n": 1, "site": "north"}],
        },
    }


@virtual
async def test_an_answer_that_is_no_json_is_told_as_text() -> None:
    _, [line], _ = await asked((200, b"<html>\xff"))

    assert line["reply"]["raw"] == "<html>\ufffd"


@virtual
async def test_of_a_refusal_the_status_is_captured_and_nothing_that_may_repeat_a_credential() -> (
    None
):
    came, [refused, nobody], text = await asked(
        (401, f"you sent {CREDENTIAL}".encode()), NoReply(f"{CREDENTIAL} refused")
    )

    assert came == [BatchFailed, Unreachable]
    assert (refused["reply"]["status"], "body" in refused["reply"]) == (401, False)
    assert nobody["reply"]["status"] is None
    assert CREDENTIAL.encode() not in text
    assert b"server.example.org" not in text


@virtual
async def test_an_answer_that_is_too_long_is_none() -> None:
    came, [line], _ = await asked((200, b"x" * 100), most=10)

    assert came == [BatchFailed]
    assert "body" not in line["reply"]
    assert "raw" not in line["reply"]


@virtual
async def test_a_redacted_capture_has_no_exchanges() -> None:
    came, lines, _ = await asked((200, b"[]"), redact=["n"])

    assert (came, lines) == ([b"[]"], [])


@virtual
async def test_without_a_capture_the_exchange_is_the_one_itself() -> None:
    clock = Clock(asyncio.get_running_loop())
    server = Answers(clock, (200, b"[]"))
    exchange = recorded(Captures(clock), "p", "transforms[0]", server.to)

    made = exchange(None)(b"[]")  # type: ignore[arg-type]

    assert type(made) is type(server(b"[]"))
    async with made as reply:
        assert type(reply) is Reply
