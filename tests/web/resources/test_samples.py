"""Samples over HTTP: what is asked, what is answered, what is refused, and who leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import falcon.testing
import jsonschema
import pytest

from headrace.web.app import Application
from headrace.web.openapi import described
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.waiting import until
from tests.web.exchange import Exchange
from tests.web.jsonengine import JsonEngine

PATH = "/api/inputs/sample"
Client = falcon.testing.ASGIConductor
Post = Callable[..., Awaitable[dict[str, Any]]]

DUMMY = {"type": "dummy", "duration": 1}
POSTED = {"id": "posted", "inputs": [{"type": "http"}]}


@pytest.fixture
def sample(client: Client, service: Service) -> Post:
    """Ask for a sample of an input, and see that the answer is what the description says."""
    description = described(service.catalogue)

    async def asked(input: dict[str, Any], **options: Any) -> dict[str, Any]:
        answer = await client.simulate_post(PATH, json={"input": input, **options})
        assert answer.status_code == 200, answer.text
        reference = {"$ref": "#/components/schemas/SampleResponse", **description}
        jsonschema.Draft202012Validator(reference).validate(answer.json)
        said: dict[str, Any] = answer.json
        return said

    return asked


@pytest.fixture
def refused(client: Client) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    async def asked(body: Any) -> dict[str, Any]:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await client.simulate_post(PATH, body=text)
        assert answer.status_code == 400, answer.text
        said: dict[str, Any] = answer.json
        return said

    return asked


# What is sampled.


async def test_messages_are_answered_with_notes_and_how_long_it_took(sample: Post) -> None:
    said = await sample(DUMMY, max_messages=1)

    assert said.keys() == {"outcome", "messages", "notes", "waited_ms"}
    assert said["outcome"] == "sampled"
    assert [each.keys() for each in said["messages"]] == [{"current_time", "value"}]
    assert said["notes"] == []
    assert 1000 <= said["waited_ms"] < 5000


async def test_an_envelope_shows_the_name_of_the_sample(sample: Post) -> None:
    said = await sample({**DUMMY, "envelope": {"type": "wrap"}}, max_messages=1)

    about = said["messages"][0]["_meta"]
    assert about["pipeline"].startswith("sample-")
    assert about["input"] == "dummy"


async def test_an_ignored_buffer_is_told(sample: Post) -> None:
    said = await sample({**DUMMY, "buffer": {"type": "static", "size": 9}}, timeout_ms=0)

    assert said["notes"] == ["'buffer' is ignored: messages are shown as they arrive"]


async def test_no_messages_are_an_empty_list(sample: Post) -> None:
    said = await sample({"type": "dummy", "duration": 3600}, timeout_ms=50)

    assert (said["outcome"], said["messages"]) == ("sampled", [])
    assert 50 <= said["waited_ms"] < 2000


class Recorded:
    """Samples that keep what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []

    async def take(self, component: Any, *, most: int, seconds: float) -> Any:
        from headrace.compiler.runtime.sampling import Sample

        self.asked.append((most, seconds))
        return Sample([], [], 0.0)

    def end(self) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("options", "most", "seconds", "notes"),
    [
        ({}, 5, 5.0, []),
        ({"max_messages": None, "timeout_ms": None}, 5, 5.0, []),
        ({"max_messages": 1, "timeout_ms": 1}, 1, 0.001, []),
        ({"max_messages": 50, "timeout_ms": 30000}, 50, 30.0, []),
        ({"max_messages": 0}, 1, 5.0, ["'max_messages' 0 is read as 1"]),
        ({"max_messages": 51}, 50, 5.0, ["'max_messages' 51 is read as 50"]),
        ({"timeout_ms": 30001}, 5, 30.0, ["'timeout_ms' 30,001 is read as 30,000"]),
        ({"timeout_ms": 0}, 5, 0.0, []),
    ],
)
async def test_what_is_wanted_is_bounded(
    sample: Post, engine: JsonEngine, options: Any, most: int, seconds: float, notes: list[str]
) -> None:
    recorded = Recorded()
    engine.inner.samples = recorded  # type: ignore[assignment]

    said = await sample(DUMMY, **options)

    assert recorded.asked == [(most, seconds)]
    assert said["notes"] == notes


async def test_a_running_pipeline_is_sampled(sample: Post, client: Client) -> None:
    await client.simulate_post("/api/pipelines", json=POSTED)
    asking = asyncio.ensure_future(
        sample({"type": "pipeline", "upstream": "posted"}, max_messages=2)
    )
    while not asking.done():
        await client.simulate_post("/api/pipelines/posted/messages", json={"n": 1})

    assert (await asking)["messages"] == [{"n": 1}, {"n": 1}]


async def test_numbers_are_answered_as_they_are_read(sample: Post, client: Client) -> None:
    await client.simulate_post("/api/pipelines", json=POSTED)
    reading = {"type": "pipeline", "upstream": "posted"}
    asking = asyncio.ensure_future(sample(reading, max_messages=1))
    while not asking.done():
        body = b'{"large": 123456789012345678901234567890, "whole": 42.0}'
        await client.simulate_post("/api/pipelines/posted/messages", body=body)

    message = (await asking)["messages"][0]
    assert message == {"large": 123456789012345678901234567890, "whole": 42.0}
    assert type(message["whole"]) is float


# What cannot be built.


@pytest.mark.parametrize(
    ("input", "message", "code"),
    [
        (
            {"type": "redis", "connection": "cache", "channel": "c"},
            "input.connection: there is no redis connection 'cache' (expected a redis connection;"
            " none is filed)",
            "unknown-connection",
        ),
        (
            {"type": "pipeline", "upstream": "posted"},
            "input.upstream: there is no pipeline 'posted' to read from (expected the id of another"
            " pipeline)",
            "missing-upstream",
        ),
        (
            {"type": "nats", "connection": "bus", "subject": "a..b"},
            "input.subject: a token of the subject is empty (expected tokens joined by dots, such as"
            " plant.press.temp; '*' is any one token, '>' at the end any number)",
            "not-a-subject",
        ),
        (
            {**DUMMY, "ack": "on_delivery"},
            "input.ack: a message from 'dummy' is acknowledged to nobody, so 'ack' cannot be"
            " on_delivery (expected on_receipt)",
            "nothing-to-acknowledge",
        ),
        (
            {"type": "dummy", "duration": 0},
            "input.duration: expected an integer of at least 1 and of at most 1000000000, found 0",
            "out-of-range",
        ),
    ],
)
async def test_an_input_that_cannot_be_built_is_a_failure(
    sample: Post, input: dict[str, Any], message: str, code: str
) -> None:
    said = await sample(input)

    told = (said["outcome"], said["stage"], said["message"], said["notes"])
    assert told == ("failed", "build", message, [])
    assert [each["code"] for each in said["diagnostics"]] == [code]
    assert said["diagnostics"][0]["path"] == message.partition(":")[0]
    assert said["diagnostics"][0]["line"] == 1


async def test_a_secret_that_does_not_resolve_is_a_failure(sample: Post, client: Client) -> None:
    await client.simulate_post(
        "/api/connections", json={"id": "cache", "type": "redis", "url": "${NOWHERE}"}
    )

    said = await sample({"type": "redis", "connection": "cache", "channel": "c"})

    assert (said["outcome"], said["stage"]) == ("failed", "build")
    assert "NOWHERE" in said["message"]
    assert said["diagnostics"][0]["code"] == "unresolved-secret"


async def test_all_that_is_wrong_is_told(sample: Post) -> None:
    said = await sample({"type": "nats", "connection": " ", "subject": "a b", "ack": "on_delivery"})

    assert [each["path"] for each in said["diagnostics"]] == [
        "input.connection",
        "input.subject",
        "input.ack",
    ]


async def test_a_file_that_is_missing_is_a_failure(
    sample: Post, client: Client, engine: JsonEngine, tmp_path: Path
) -> None:
    connection = {"id": "plant", "type": "mqtt", "host": "h", "tls": True, "ca_file": "ca.pem"}
    await client.simulate_post("/api/connections", json=connection)

    said = await sample({"type": "mqtt", "connection": "plant", "topic": "t"})

    assert (said["outcome"], said["stage"]) == ("failed", "build")
    assert said["message"].startswith("input.connection: there is no file 'ca.pem'")


# What cannot be read.


async def test_a_literal_password_is_in_no_answer(sample: Post, client: Client) -> None:
    connection = {"id": "cache", "type": "redis", "url": "redis://u:open-sesame@127.0.0.1:1"}
    await client.simulate_post("/api/connections", json=connection)

    said = await sample({"type": "redis", "connection": "cache", "channel": "c"}, timeout_ms=100)

    assert said == {
        "outcome": "failed",
        "stage": "read",
        "message": "127.0.0.1:1 does not answer: connection refused",
        "notes": [],
    }


# What is refused.


async def test_a_body_that_is_no_json_is_refused(refused: Any) -> None:
    said = await refused(b'{"input": ')

    assert said["error"].startswith("the body is not JSON: line 1, column ")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"input": {"type": "http"}},
            "no sample could be taken: input.type: an input of the kind 'http' cannot be sampled: it"
            " reads nothing by itself: messages are posted to the pipeline that has it (expected one"
            " of dummy, kafka, nats, pipeline, mqtt, redis, opcua)",
        ),
        (
            {"input": {"type": "kafak"}},
            'no sample could be taken: input.type: unknown type "kafak" (expected one of',
        ),
        ({}, "no sample could be taken: input: this key is required"),
        ({"input": None}, "no sample could be taken: input: "),
        ({"input": []}, "no sample could be taken: input: expected an object"),
        ([], "no sample could be taken: expected an object"),
        (
            {"input": DUMMY, "max_message": 3},
            "no sample could be taken: max_message: unknown key 'max_message'",
        ),
        (
            {"input": {**DUMMY, "duraton": 3}},
            "no sample could be taken: input.duraton: unknown key 'duraton'",
        ),
        (
            {"input": {"type": "dummy"}},
            "no sample could be taken: input.duration: this key is required",
        ),
        (
            {"input": DUMMY, "max_messages": -1},
            "no sample could be taken: max_messages: expected an integer of at least 0, found -1",
        ),
        (
            {"input": DUMMY, "max_messages": "3"},
            "no sample could be taken: max_messages: expected an integer",
        ),
        (
            {"input": DUMMY, "timeout_ms": 1.5},
            "no sample could be taken: timeout_ms: expected an integer",
        ),
        (
            b'{"input": {"type": "dummy", "duration": 1, "duration": 2}}',
            "no sample could be taken: input.duration: ",
        ),
    ],
)
async def test_a_wrong_request_is_refused(refused: Any, body: Any, error: str) -> None:
    said = await refused(body)

    assert said["error"].startswith(error)
    assert said["diagnostics"]


async def test_a_misspelt_key_comes_with_the_one_that_is_meant(refused: Any) -> None:
    said = await refused({"input": {"type": "dummy", "duraton": 3}, "max_message": 3})

    suggestions = {each["path"]: each["suggestion"] for each in said["diagnostics"]}
    assert suggestions["max_message"] == "did you mean 'max_messages'?"
    assert suggestions["input.duraton"] == "did you mean 'duration'?"


# Who leaves.


async def test_a_client_that_leaves_ends_its_sample(service: Service, engine: JsonEngine) -> None:
    body = json.dumps({"input": {"type": "dummy", "duration": 3600}, "timeout_ms": 30000})
    exchange = Exchange(Application(service), "POST", PATH, body=[body.encode()])
    asking = asyncio.ensure_future(exchange.run())
    await until(lambda: len(engine.inner.samples._under_way) == 1)

    exchange.leave()
    await until(lambda: not engine.inner.samples._under_way)
    await asking


async def test_a_server_that_shuts_down_ends_its_samples(
    service: Service, engine: JsonEngine
) -> None:
    body = json.dumps({"input": {"type": "dummy", "duration": 3600}, "timeout_ms": 30000})
    exchange = Exchange(Application(service), "POST", PATH, body=[body.encode()])
    asking = asyncio.ensure_future(exchange.run())
    await until(lambda: len(engine.inner.samples._under_way) == 1)

    engine.hush()
    async with asyncio.timeout(PATIENCE / 2):
        await asking

    assert exchange.status == 200
    assert exchange.json["outcome"] == "sampled"
    assert exchange.json["notes"] == ["the server is shutting down: the sample ended early"]
