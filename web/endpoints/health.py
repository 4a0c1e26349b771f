"""What watches over the process."""

from __future__ import annotations

from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.resources import health, metrics

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/livez",
        operation="getLiveness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the process is alive.",
        responses={200: Answer("It is.", "Health")},
        respond=health.live,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        operation="getReadiness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the pipelines are loaded and requests are wanted.",
        responses={
            200: Answer("They are.", "Health"),
            **refusals(_503="Starting or shutting down."),
        },
        respond=health.ready,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        operation="getMetrics",
        tag="health",
        access=Access.READ,
        summary="Read what every pipeline counts and every bucket holds, for Prometheus.",
        responses={200: Answer("The figures.", "Text", media_type="text/plain")},
        respond=metrics.get_metrics,
    ),
)
