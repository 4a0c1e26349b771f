"""The live events."""

from __future__ import annotations

from headrace.web.access import Access
from headrace.web.endpoints.row import Answer, Endpoint
from headrace.web.events import EVENTS_PATH, EventStream

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path=EVENTS_PATH,
        operation="streamEvents",
        tag="events",
        access=Access.READ,
        summary="Follow batches and failures live: a sample, not a durable feed.",
        responses={
            200: Answer("Server-sent events.", "UiEvent", media_type="text/event-stream"),
        },
        ahead=EventStream,
    ),
)
