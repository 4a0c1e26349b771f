"""`GET /api/capture`: what may be asked for, what goes over the wire, and how a stream ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.runtime.capturing.captures import AT_ONCE, CaptureRequest
from headrace.web.app import Application
from headrace.web.auth.access import Access, Caller
from headrace.web.openapi import described
from headrace.web.parameters import WrongParameter
from headrace.web.resources.capture import MOST_PATHS, MOST_SEGMENTS, asked_for
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.web.exchange import Exchange

TAKES = {
    "id": "p",
    "inputs": [
        {
            "type": "http",
            "auth": {"type": "header", "name": "X-Request-Key", "value": "sesame-and-more"},
            "envelope": {"type": "merge"},
        }
    ],
}


class Stream:
    """A running stream."""

    def __init__(self, service: Service, query: bytes = b"") -> None:
        self.exchange = Exchange(
            Application(service), "GET", "/api/capture", body=[b"", b""], query=query
        )
        self.task = asyncio.ensure_future(self.exchange.run())

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return json.loads(await self.exchange.next_body())

    async def leave(self) -> None:
        self.exchange.leave()
        await self.task


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (b"", CaptureRequest((), 600, 64 * 2**20, ())),
        (
            b"pipeline=a&pipeline=b%20c&pipeline=a&seconds=5&bytes=1&redact=x.y&redact=$meta.topic",
            CaptureRequest(("a", "b c"), 5, 1, ("x.y", "$meta.topic")),
        ),
    ],
)
def test_a_query_says_what_is_wanted(query: bytes, wanted: CaptureRequest) -> None:
    assert asked_for(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        b"pipeline=",
        b"seconds=0",
        b"seconds=86401",
        b"seconds=5&seconds=6",
        b"bytes=0",
        b"bytes=2000000000",
        b"bytes=64MiB",
        b"redact=",
        b"redact=a..b",
        b"redact=" + b".".join([b"a"] * (MOST_SEGMENTS + 1)),
        b"&".join(b"redact=p%d" % number for number in range(MOST_PATHS + 1)),
    ],
)
def test_a_value_that_a_parameter_does_not_take_is_told(query: bytes) -> None:
    with pytest.raises(WrongParameter):
        asked_for(query)


async def test_what_is_posted_is_captured_and_no_credential_with_it(
    service: Service, client: Any, components: Catalogue
) -> None:
    await client.simulate_post("/api/pipelines", json=TAKES)
    stream = Stream(service)
    header = await stream.next()
    headers = [
        (b"x-request-key", b"sesame-and-more"),
        (b"authorization", b"Bearer another-one"),
        (b"cookie", b"a=third-one"),
        (b"x-request-id", b"press-7"),
    ]
    path = "/api/pipelines/p/messages"
    post = Exchange(Application(service), "POST", path, headers=headers, body=[b'[{"n":1}]'])
    await post.run()

    line = await stream.next()
    await stream.leave()

    assert post.status == 202
    assert stream.exchange.headers["content-type"] == "text/x-ndjson"
    assert stream.exchange.headers["cache-control"] == "no-store"
    assert (line["to"], line["batch"]) == ("p.inputs[0]", [{"n": 1}])
    assert line["meta"]["headers"]["x-request-id"] == "press-7"
    told = stream.exchange.body
    assert not any(each in told for each in (b"sesame", b"another-one", b"third-one"))
    description = described(components)
    answers = description["paths"]["/api/capture"]["get"]["responses"]["200"]["content"]
    schema = answers["text/x-ndjson"]["schema"]
    for each in (header, line, {"at": 1.0, "end": "seconds", "records": 1, "dropped": 0}):
        Draft202012Validator({**schema, **description}).validate(each)


async def test_a_stream_that_its_client_leaves_gives_its_place_back(service: Service) -> None:
    for _ in range(AT_ONCE + 1):
        stream = Stream(service)
        assert (await stream.next())["headrace"] == "capture"
        await stream.leave()


async def test_one_stream_too_many_is_told_to_come_again(service: Service) -> None:
    streams = [Stream(service) for _ in range(AT_ONCE)]
    for each in streams:
        await each.next()

    late = Stream(service)
    await late.task

    assert late.exchange.status == 503
    assert "captures are being taken" in late.exchange.json["error"]
    for each in streams:
        await each.leave()


async def test_a_stream_ends_with_what_its_client_was_let_in_by(service: Service) -> None:
    over = asyncio.Event()

    class Sessions:
        is_guarded = True

        async def caller(self, scope: Any) -> Caller:
            return Caller(Access.ADMIN, "ann", over.wait)

        async def close(self) -> None:
            """Nothing is open."""

    service.authenticator = Sessions()
    stream = Stream(service)
    await stream.next()

    over.set()

    assert (await stream.next())["end"] == "signed out"
    await stream.task


async def test_the_end_of_the_server_ends_it(service: Service) -> None:
    stream = Stream(service)
    await stream.next()

    service.engine.hush()

    assert (await stream.next())["end"] == "stopped"
    await stream.task
