"""`GET /events`: the live feed as server-sent events.

    data: {"pipeline_id":"hello","stage":"input","ts":1770000000123,"seq":7,...}

    event: lagged
    data: 12

    event: fault
    data: "pipeline 'hello' output: ..."

A comment is sent at once, so that proxies pass the headers on, and every 15 seconds after. There is
no `id:` and no replay: the stream is a live sample. A client that stops reading loses events and
nothing else waits for it: what it has not taken is bounded by its listener and its socket.

Further named events come to who asks for them, because a client that knows none of them may stumble
over what it did not ask for. `?named=ping` has one beside every comment: a comment reaches no script
of a page. `?named=pulse` tells each second what pipelines have counted, and for who asks for it no batch is
rendered that they do not name with `pipeline`. `?named=changed` tells what somebody has changed,
`?named=waiting` and `?named=going-on` that a component that bridges outages waits, and no longer does,
`?named=dead-letters` that something was put down as dead letters, and `?named=store` that the store takes
nothing, or does again, or that something of it is damaged.

    event: ping
    data: {}

    event: pulse
    data: {"ts":1770000000123,"pipelines":{"hello":{"in":7,"out":7,"status":"running",...}}}

    event: changed
    data: {"what":"pipelines","id":"hello","by":"ann"}

    event: waiting
    data: {"pipeline_id":"hello","stage":"output","component":0,"class":"unavailable","why":...}

    event: going-on
    data: {"pipeline_id":"hello","stage":"output","component":0,"ts":1770000005123}

It is answered ahead of falcon, whose own event streams notice a client that has left only with the
next event, and keep the pipelines reporting until then.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import MutableMapping
from typing import Annotated, Literal, get_args
from weakref import WeakKeyDictionary

from msgspec import Meta

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.liveevents import (
    MESSAGES_PER_BATCH,
    Change,
    Event,
    Interest,
    Lagged,
    Run,
)
from headrace.compiler.runtime.monitoring.namedevents import (
    NAMED_EVENTS,
    DeadLettersEvent,
    GoingOnEvent,
    StoreEvent,
    WaitingEvent,
)
from headrace.compiler.runtime.monitoring.pulses import Pulse
from headrace.web.asgi import AsgiMessage, Receive, Send, gone
from headrace.web.auth.access import Access
from headrace.web.endpoint import MALFORMED, Answer, Endpoint, Query
from headrace.web.engineprotocol import Listener
from headrace.web.ignoring import fields, words
from headrace.web.parameters import WholeNumber, WrongParameter, once
from headrace.web.resources.eventshapes import FaultEvent, LaggedEvent, PingEvent, UiEvent
from headrace.web.resources.streaming import ENDING, beginning, part, signed_out, until_one_ends
from headrace.web.service import Service

EVENTS_PATH = "/events"
MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0

Named = Literal["ping", "pulse", "changed", "waiting", "going-on", "dead-letters", "store"]
"""The events that come only to who asks for them by name."""
KNOWN = frozenset({*get_args(Named), "lagged", "fault"})
"""All names that may be asked for: the others come anyway."""


NamedEvents = Annotated[list[Named], Meta(title="NamedEvents")]
LIMIT = WholeNumber(
    "limit",
    "How many messages of a batch are shown at most.",
    default=MESSAGES_PER_BATCH,
    most=MESSAGES_PER_BATCH,
)

_COMMENT = b":\n\n"
_PING = b"event: ping\ndata: %b\n\n" % encode(PingEvent())


class EventStream:
    """Answers each request with a stream of its own.

    It ends with the session, or the token, that its client was let in by.
    """

    def __init__(self, service: Service) -> None:
        self._engine = service.engine
        self._clock = service.clock
        self._chunks: MutableMapping[Run, AsgiMessage] = WeakKeyDictionary()
        """What is sent of a run, made once for all who are told it."""

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Stream until the client leaves, is signed out, or the feed ends.

        Raises:
            WrongParameter: nothing was sent.
        """
        named, interest = asked_for(scope["query_string"])
        await send(beginning(MEDIA_TYPE))
        listener = self._engine.observe(interest, pulse="pulse" in named)
        sign_of_life = _COMMENT + _PING if "ping" in named else _COMMENT
        try:
            await until_one_ends(
                "an event stream",
                self._copy(listener, send),
                _keep_alive(self._clock, send, sign_of_life),
                gone(receive),
                signed_out(scope),
            )
        finally:
            listener.close()
        await send(ENDING)

    async def _copy(self, listener: Listener, send: Send) -> None:
        async for told in listener:
            if isinstance(told, Lagged):
                chunk = part(lag(told))
            elif (known := self._chunks.get(told)) is not None:
                chunk = known
            else:
                self._chunks[told] = chunk = part(b"".join(map(frame, told.events)))
            await send(chunk)


def asked_for(query: bytes) -> tuple[set[str], Interest]:
    """Return the named events that a query asks for, and what else is to be told.

    Who asks for the pulse is shown only batches of pipelines that are named, and told all failures.

    Raises:
        WrongParameter: a value is none that the parameter takes.
    """
    given = defaultdict[str, list[str]](list)
    for name, value in fields(query):
        given[name].append(value)
    named = {word for value in given["named"] for word in words(value)}
    if "" in (ids := frozenset(given["pipeline"])):
        raise WrongParameter("pipeline", "", "the id of a pipeline")
    has_pulse, chosen = "pulse" in named, ids or None
    return named, Interest(
        batches=ids if has_pulse else chosen,
        failures=None if has_pulse else chosen,
        messages=LIMIT.number(once(LIMIT.name, given[LIMIT.name])),
        changes="changed" in named,
        named=frozenset(named.intersection(NAMED_EVENTS.values())),
    )


def lag(lagged: Lagged) -> bytes:
    """Return how what was missed goes over the wire."""
    return b"event: lagged\ndata: %d\n\n" % lagged.count


def frame(event: Event) -> bytes:
    """Return how one event goes over the wire."""
    if event.name:
        return b"event: %b\ndata: %b\n\n" % (event.name.encode(), event.data)
    return b"data: %b\n\n" % event.data


async def _keep_alive(clock: Clock, send: Send, sign_of_life: bytes) -> None:
    while True:
        await send(part(sign_of_life))
        await clock.sleep(KEEP_ALIVE_SECONDS)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path=EVENTS_PATH,
        operation="streamEvents",
        tag="events",
        access=Access.READ,
        summary="Follow batches and failures live: a sample, not a durable feed.",
        query=(
            Query(
                "named",
                "Further events that are wanted, by name, parted by commas. `ping`: one at once and every"
                " 15 seconds. `pulse`: each second what pipelines have counted; no batches come then, all"
                " failures do. `changed`: what somebody has changed. `waiting` and `going-on`: that a"
                " component with `retry` waits, and that it does no longer. `dead-letters`: what was put"
                " down as dead letters. `store`: that the store takes nothing, or does again, or that"
                " something of it is damaged. Names that do not exist are ignored, and told in"
                " `X-Headrace-Ignored`.",
                NamedEvents,
                KNOWN,
            ),
            Query(
                "pipeline",
                "Only batches of this pipeline, which need not be there yet. May be given more than once."
                " Without `pulse`, only failures of these as well.",
                list[str],
            ),
            LIMIT.query,
        ),
        responses={
            200: Answer(
                "Server-sent events. The data of those without a name is a UiEvent. `lagged`: so many"
                " were missed. `fault`: why one could not be made. The others: to who asks for them.",
                UiEvent,
                media_type=MEDIA_TYPE,
                named={
                    "lagged": LaggedEvent,
                    "fault": FaultEvent,
                    "ping": PingEvent,
                    "pulse": Pulse,
                    "changed": Change,
                    "waiting": WaitingEvent,
                    "going-on": GoingOnEvent,
                    "dead-letters": DeadLettersEvent,
                    "store": StoreEvent,
                },
            ),
            **MALFORMED,
        },
        ahead=EventStream,
        is_stream=True,
    ),
)
