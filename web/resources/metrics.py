"""`GET /metrics`: what pipelines count and buckets hold, in the text format of Prometheus.

Nothing is counted here. The figures are the pipelines' own, read when somebody asks, so a scrape
costs what a listing costs and a message costs nothing.

Source: https://prometheus.github.io/client_python/collector/custom/
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import falcon.asgi

from headrace.compiler.runtime.monitoring.figures import BucketFigures, PipelineFigures
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint
from headrace.web.service import Service
from headrace.web.shapes import PlainText

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Figures = Sequence[tuple[Sequence[str], float]]
"""The samples of a family: the values of its labels, and a figure."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def get_metrics(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the figures of all pipelines and buckets."""
    # Loaded with the first scrape: it takes a tenth of the time a start may take.
    from prometheus_client import generate_latest

    scrape = Scrape(await service.engine.pipelines(), await service.engine.buckets())
    # In a thread: the text of a thousand pipelines takes a tenth of a second, and messages wait.
    resp.data = await asyncio.to_thread(generate_latest, scrape)
    resp.content_type = CONTENT_TYPE


@dataclass(frozen=True)
class Scrape:
    """The figures of one scrape. A registry of its own: several servers may share a process."""

    pipelines: Collection[PipelineFigures]
    buckets: Sequence[BucketFigures]

    def collect(self) -> Iterator[Metric]:
        """Yield every family of figures."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        pipelines, buckets = self.pipelines, self.buckets
        by_stage, by_pipeline, by_bucket = ("pipeline", "stage"), ("pipeline",), ("bucket",)
        through = [
            figure
            for each in pipelines
            for figure in (((each.id, "input"), each.inbound), ((each.id, "output"), each.outbound))
        ]
        failed = [((p.id, stage), count) for p in pipelines for stage, count in p.failures.items()]
        families: list[tuple[type[Counter | Gauge], str, str, Sequence[str], Figures]] = [
            (
                Counter,
                "headrace_messages",
                "Messages taken in (stage input) and handed on by the transforms (stage output).",
                by_stage,
                through,
            ),
            (
                Counter,
                "headrace_messages_skipped",
                "Payloads that are not JSON, and messages that no envelope could be put on.",
                by_pipeline,
                [((each.id,), each.skipped) for each in pipelines],
            ),
            (
                Counter,
                "headrace_failures",
                "Failures, repeated ones included.",
                by_stage,
                failed,
            ),
            (
                Gauge,
                "headrace_messages_held",
                "Messages held by buffers.",
                by_pipeline,
                [((each.id,), each.held) for each in pipelines],
            ),
            (
                Gauge,
                "headrace_batches_in_flight",
                "Batches on their way.",
                by_pipeline,
                [((each.id,), each.in_flight) for each in pipelines],
            ),
            (
                Gauge,
                "headrace_pipeline_status",
                "1 for the status a pipeline has.",
                ("pipeline", "status"),
                [((each.id, each.status), 1) for each in pipelines],
            ),
            (
                Gauge,
                "headrace_bucket_keys",
                "Keys that a bucket holds.",
                by_bucket,
                [((each.name,), each.keys) for each in buckets],
            ),
            (
                Counter,
                "headrace_bucket_evictions",
                "Keys that had to go because a new one came to a full bucket.",
                by_bucket,
                [((each.name,), each.evictions) for each in buckets],
            ),
        ]
        for kind, name, said, labels, figures in families:
            family = kind(name, said, labels=labels)
            for values, figure in figures:
                family.add_metric(values, figure)
            yield family


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/metrics",
        operation="getMetrics",
        tag="health",
        access=Access.READ,
        summary="Read what every pipeline counts and every bucket holds, for Prometheus.",
        responses={200: Answer("The figures.", PlainText, media_type="text/plain")},
        respond=get_metrics,
    ),
)
