"""The live events."""

from __future__ import annotations

from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, Query
from headrace.web.resources.events import EVENTS_PATH, KNOWN, EventStream

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
                " 15 seconds. Names that do not exist are ignored, and told in `X-Headrace-Ignored`.",
                "NamedEvents",
                KNOWN,
            ),
        ),
        responses={
            200: Answer(
                "Server-sent events. The data of those without a name is a UiEvent. `lagged`: so many"
                " were missed. `fault`: why one could not be made. `ping`: to who asks for it.",
                "UiEvent",
                media_type="text/event-stream",
                named={"lagged": "LaggedEvent", "fault": "FaultEvent", "ping": "PingEvent"},
            ),
        },
        ahead=EventStream,
    ),
)
