"""The event stream: what goes over the wire, and how a stream ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from jsonschema import Draft202012Validator

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.monitoring.channel import MOST_WAITING
from headrace.compiler.runtime.monitoring.liveevents import ALL, Event, Interest, Lagged, Run
from headrace.compiler.runtime.monitoring.namedevents import NAMED_EVENTS
from headrace.web.app import Application
from headrace.web.parameters import WrongParameter
from headrace.web.resources.events import KNOWN, EventStream, asked_for, frame, lag
from headrace.web.service import Service
from tests.virtual import virtual
from tests.web.exchange import Exchange


class Told:
    """An engine whose listeners hear what they are told, and nothing else."""

    def __init__(self) -> None:
        self.events = asyncio.Queue[Run | Lagged | None]()
        self.listening = 0

    def observe(self, interest: Interest, *, pulse: bool) -> Told:
        self.interest, self.pulse = interest, pulse
        self.listening += 1
        return self

    def close(self) -> None:
        self.listening -= 1

    def tell(self, *events: Event | Lagged | None) -> None:
        for event in events:
            self.events.put_nowait(Run((event,)) if isinstance(event, Event) else event)

    async def __aiter__(self) -> AsyncIterator[Run | Lagged]:
        while (event := await self.events.get()) is not None:
            yield event


class Stream:
    """A running stream over a `Told` engine."""

    def __init__(self, query: bytes = b"") -> None:
        clock = Clock(asyncio.get_running_loop())
        self.engine = Told()
        service = Service(self.engine, None, clock)  # type: ignore[arg-type]
        self.exchange = Exchange(
            EventStream(service), "GET", "/events", body=[b"", b""], query=query
        )
        self.task = asyncio.ensure_future(self.exchange.run())

    async def next(self) -> bytes:
        return await self.exchange.next_body()


def test_an_event_is_one_data_line() -> None:
    assert frame(Event(b'{"seq":1}')) == b'data: {"seq":1}\n\n'


def test_an_event_that_could_not_be_rendered_is_a_named_event() -> None:
    assert frame(Event(b'"why"', "fault")) == b'event: fault\ndata: "why"\n\n'


def test_missed_events_are_a_named_event() -> None:
    assert lag(Lagged(12)) == b"event: lagged\ndata: 12\n\n"


@virtual
async def test_a_comment_is_sent_at_once_and_events_as_they_come() -> None:
    stream = Stream()

    assert await stream.next() == b":\n\n"
    assert stream.exchange.status == 200
    assert stream.exchange.headers["content-type"] == "text/event-stream"
    assert stream.exchange.headers["cache-control"] == "no-store"

    stream.engine.tell(Event(b"1"), Lagged(3), Event(b"2"))
    assert await stream.next() == b"data: 1\n\n"
    assert await stream.next() == b"event: lagged\ndata: 3\n\n"
    assert await stream.next() == b"data: 2\n\n"

    stream.exchange.leave()
    await stream.task


@virtual
async def test_a_comment_keeps_an_idle_stream_alive() -> None:
    loop = asyncio.get_running_loop()
    stream = Stream()

    times = []
    for _ in range(4):
        assert await stream.next() == b":\n\n"
        times.append(loop.time())

    assert times == [0, 15, 30, 45]
    stream.exchange.leave()
    await stream.task


@virtual
async def test_who_asks_for_pings_has_one_beside_every_comment() -> None:
    loop = asyncio.get_running_loop()
    stream = Stream(b"named=ping")

    times = []
    for _ in range(3):
        assert await stream.next() == b":\n\nevent: ping\ndata: {}\n\n"
        times.append(loop.time())

    assert times == [0, 15, 30]
    stream.exchange.leave()
    await stream.task


@virtual
@pytest.mark.parametrize(
    ("query", "has_pings"),
    [
        (b"", False),
        (b"named=", False),
        (b"other=ping", False),
        (b"named=lagged,fault", False),
        (b"named=pong", False),
        (b"named=pong,%20ping&named=pang", True),
        (b"named=pang&x&named=+ping,,", True),
    ],
)
async def test_names_are_taken_from_all_that_is_asked(query: bytes, has_pings: bool) -> None:
    stream = Stream(query)

    first = await stream.next()

    assert (b"event: ping" in first) == has_pings
    stream.exchange.leave()
    await stream.task


NOBODY = frozenset[str]()
P_AND_Q = frozenset({"p", "q/1"})


@pytest.mark.parametrize(
    ("query", "interest"),
    [
        (b"", ALL),
        (b"named=ping&other=1", ALL),
        (b"named=changed", Interest(changes=True)),
        (b"named=pulse", Interest(batches=NOBODY)),
        (b"pipeline=p&pipeline=q%2F1&pipeline=p", Interest(P_AND_Q, P_AND_Q)),
        (b"named=pulse,changed&pipeline=q%2f1&pipeline=p", Interest(P_AND_Q, changes=True)),
        (b"limit=100", ALL),
        (b"limit=0&named=changed", Interest(messages=0, changes=True)),
    ],
)
def test_what_is_told_is_what_is_asked_for(query: bytes, interest: Interest) -> None:
    assert asked_for(query)[1] == interest


@virtual
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (b"limit=", "the parameter 'limit' is '': expected a whole number from 0 to 100"),
        (b"limit=101", "the parameter 'limit' is '101': expected a whole number from 0 to 100"),
        (b"limit=1.5", "the parameter 'limit' is '1.5': expected a whole number from 0 to 100"),
        (b"limit=1&limit=1", "the parameter 'limit' is '1, 1': expected it once"),
        (b"pipeline=p&pipeline=", "the parameter 'pipeline' is '': expected the id of a pipeline"),
    ],
)
async def test_what_cannot_be_read_is_refused_before_anything_is_sent(
    query: bytes, said: str
) -> None:
    stream = Stream(query)

    with pytest.raises(WrongParameter) as refused:
        await stream.task

    assert str(refused.value) == said
    assert stream.exchange.messages == []
    assert stream.engine.listening == 0


@virtual
async def test_a_client_that_leaves_is_forgotten_at_once() -> None:
    loop = asyncio.get_running_loop()
    stream = Stream()
    await stream.next()
    assert stream.engine.listening == 1

    stream.exchange.leave()
    await stream.task

    assert stream.engine.listening == 0
    assert loop.time() == 0


@virtual
async def test_the_end_of_the_feed_ends_the_stream() -> None:
    stream = Stream()
    await stream.next()

    stream.engine.tell(Event(b"1"), None)
    await stream.task

    assert stream.exchange.messages[-1] == {"type": "http.response.body"}
    assert stream.exchange.body.endswith(b"data: 1\n\n")
    assert stream.engine.listening == 0


@virtual
async def test_a_fault_of_the_feed_is_logged_and_ends_the_stream(caplog) -> None:
    stream = Stream()
    await stream.next()

    stream.engine.events.put_nowait("no run")  # type: ignore[arg-type]
    await stream.task

    assert stream.engine.listening == 0
    assert "an event stream broke" in caplog.text
    assert stream.exchange.messages[-1] == {"type": "http.response.body"}


async def test_a_batch_and_its_pipeline_are_seen(client, service) -> None:
    config = {"id": "p", "inputs": [{"type": "http"}]}
    await client.simulate_post("/api/pipelines", json=config)
    exchange = Exchange(Application(service), "GET", "/events", body=[b"", b""])
    task = asyncio.ensure_future(exchange.run())
    await exchange.next_body()

    await client.simulate_post("/api/pipelines/p/messages", json={"n": 1})

    first, _ = (await exchange.next_body()).split(b"\n\n", 1)
    described = (await client.simulate_get("/api/openapi.json")).json
    event = json.loads(first.removeprefix(b"data: "))
    assert list(event) == ["pipeline_id", "stage", "ts", "seq", "component", "payload"]
    assert (event["pipeline_id"], event["stage"], event["seq"]) == ("p", "input", 1)
    assert event["payload"]["batch"]["messages"] == ['{"n":1}']
    schema = Draft202012Validator({**described, "$ref": "#/components/schemas/UiEvent"})
    schema.validate(event)
    schema.validate({**event, "payload": {"error": "no"}, "count": 7})
    assert not schema.is_valid({**event, "payload": {"error": "no"}, "count": 0})
    exchange.leave()
    await task


WHERE = {"pipeline_id": "p", "stage": "output", "component": 0}


async def test_the_named_events_are_described(client) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json

    streamed = described["paths"]["/events"]["get"]
    asked, chosen, limit = streamed["parameters"]
    content = streamed["responses"]["200"]["content"]["text/event-stream"]
    parts = [each["$ref"].rpartition("/")[2] for each in content["schema"]["anyOf"]]
    of_outages = ["WaitingEvent", "GoingOnEvent", "DeadLettersEvent"]
    assert parts == [
        *("UiEvent", "LaggedEvent", "FaultEvent", "PingEvent", "Pulse", "Change"),
        *of_outages,
        "StoreEvent",
    ]
    examples = {
        "lagged": 12,
        "fault": "why",
        "ping": {},
        "pulse": {"ts": 1, "pipelines": {}, "gone": ["p"]},
        "changed": {"what": "layout", "id": None, "by": None},
        "waiting": {**WHERE, "class": "unavailable", "why": "db:1 does not answer", "ts": 1},
        "going-on": {**WHERE, "ts": 1},
        "dead-letters": {**WHERE, "message": "'n' is no number", "count": 3, "ts": 1},
        "store": {"what": "full", "why": "the disk is full", "ts": 1},
    }
    assert {*NAMED_EVENTS.values()} <= KNOWN
    for name, data in examples.items():
        Draft202012Validator({**described, **content["x-headrace-events"][name]}).validate(data)
    assert (asked["name"], asked["in"], asked.get("required")) == ("named", "query", None)
    Draft202012Validator({**described, **asked["schema"]}).validate(["ping"])
    assert (chosen["name"], chosen["schema"]["type"]) == ("pipeline", "array")
    assert (limit["name"], limit["schema"]["maximum"]) == ("limit", 100)


async def test_a_client_that_stops_reading_loses_events_and_is_told_how_many(
    client, service, engine
) -> None:
    await client.simulate_post("/api/pipelines", json={"id": "p", "inputs": [{"type": "http"}]})
    listener = engine.observe()
    watch = Event(b"1")

    for _ in range(MOST_WAITING + 7):
        engine.inner._feed.publish(watch, [listener.channel])

    told = aiter(listener)
    assert await anext(told) == Lagged(7)
    run = await anext(told)
    assert isinstance(run, Run)
    assert set(run.events) == {watch}
    listener.close()
