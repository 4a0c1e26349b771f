"""`GET /metrics`: what pipelines count, buckets hold, the store keeps and the process uses, for Prometheus.

Nothing is counted here. The figures are the pipelines' own, read when somebody asks, so a scrape
costs what a listing costs and a message costs nothing. Those of the process are what every server with a
client of Prometheus tells of itself; only Linux has them.

Source: https://prometheus.github.io/client_python/collector/custom/
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import falcon.asgi

from headrace.compiler.errors import FailureClass
from headrace.compiler.runtime.monitoring.bucketfigures import BucketFigures
from headrace.compiler.runtime.monitoring.figures import PipelineFigures
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart, StoreFigures
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint
from headrace.web.service import Service
from headrace.web.shapes import PlainText

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NO_LETTERS = {"input": 0, "transform": 0, "output": 0}
"""What is told of a pipeline that has put down none yet, so that the first is seen as an increase."""

WAITED_FOR: tuple[FailureClass, ...] = ("unavailable", "misconfigured", "unclear")
"""Classes of failures that another try may end."""


async def get_metrics(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the figures of all pipelines and buckets, and of the store if one is open."""
    engine = service.engine
    scrape = Scrape(
        await engine.pipelines(),
        await engine.buckets(),
        await engine.stored(),
        service.clock.millis(),
    )
    # In a thread: the text of a thousand pipelines takes a tenth of a second, and messages wait.
    resp.data = await asyncio.to_thread(_text, scrape)
    resp.content_type = CONTENT_TYPE


def _text(scrape: Scrape) -> bytes:
    # Loaded with the first scrape, for which nobody else waits: a start it would take a tenth longer.
    from prometheus_client import generate_latest

    return generate_latest(scrape)


@dataclass(frozen=True)
class Scrape:
    """The figures of one scrape. A registry of its own: several servers may share a process."""

    pipelines: Collection[PipelineFigures]
    buckets: Sequence[BucketFigures]
    store: StoreFigures | None
    now: int
    """When it is. Units: milliseconds since 1970."""

    def collect(self) -> Sequence[Metric]:
        """Return every family of figures."""
        # No registry is given: it would be registered there.
        from prometheus_client import ProcessCollector

        process = ProcessCollector(registry=None)
        return [*self.own(), *process.collect()]

    def own(self) -> Sequence[Metric]:
        """Return the families of figures that no other server has."""
        families = [
            *self._of_pipelines(),
            *self._of_outages(),
            *self._of_letters(),
            *self._of_buckets(),
        ]
        if (store := self.store) is None:
            return families
        parts, stock = self._of_parts(store.parts), self._of_stock(store)
        return [*families, *parts, *stock, *self._of_store(store)]

    def _of_pipelines(self) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        by_pipeline, by_stage = ("pipeline",), ("pipeline", "stage")
        messages = Counter(
            "headrace_messages",
            "Messages taken in (stage input) and handed on by the transforms (stage output).",
            labels=by_stage,
        )
        skipped = Counter(
            "headrace_messages_skipped",
            "Payloads that no message can be made of, messages that no envelope could be put on, and what"
            " an input opcua drops for want of room.",
            labels=by_pipeline,
        )
        failures = Counter(
            "headrace_failures", "Failures, repeated ones included.", labels=by_stage
        )
        lost = Counter(
            "headrace_messages_lost",
            "Messages that went no further: left out, also by an input that could not read them (reason"
            " error), with their batch (batch), because the time to end was over (stopped), or as there was"
            " no more room, on the disk or in memory (dropped).",
            labels=("pipeline", "stage", "component", "reason"),
        )
        held = Gauge("headrace_messages_held", "Messages held by buffers.", labels=by_pipeline)
        in_flight = Gauge("headrace_batches_in_flight", "Batches on their way.", labels=by_pipeline)
        status = Gauge(
            "headrace_pipeline_status",
            "1 for the status a pipeline has.",
            labels=("pipeline", "status"),
        )
        for each in self.pipelines:
            messages.add_metric((each.id, "input"), each.inbound)
            messages.add_metric((each.id, "output"), each.outbound)
            skipped.add_metric((each.id,), each.skipped)
            for stage, count in each.failures.items():
                failures.add_metric((each.id, stage), count)
            for loss in each.losses:
                where = (each.id, loss.stage, str(loss.component), loss.reason)
                lost.add_metric(where, loss.count)
            held.add_metric((each.id,), each.held)
            in_flight.add_metric((each.id,), each.in_flight)
            status.add_metric((each.id, each.status), 1)
        return messages, skipped, failures, lost, held, in_flight, status

    def _of_outages(self) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        by_component = ("pipeline", "stage", "component")
        waiting = Gauge(
            "headrace_output_waiting",
            "1 while a component with `retry` waits, for what the class tells.",
            labels=(*by_component, "class"),
        )
        retries = Counter(
            "headrace_retries", "Tries again of components with `retry`.", labels=by_component
        )
        for each in self.pipelines:
            for outage in each.outages:
                place = (each.id, outage.stage, str(outage.component))
                retries.add_metric(place, outage.retries)
                for failure in WAITED_FOR:
                    waiting.add_metric((*place, failure), outage.waits_for == failure)
        return waiting, retries

    def _of_letters(self) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter

        put_down = Counter(
            "headrace_dead_letters",
            "Dead letters that pipelines have put down. One may have many messages.",
            labels=("pipeline", "stage"),
        )
        for each in self.pipelines:
            if each.letters is not None:
                for stage, count in {**_NO_LETTERS, **each.letters}.items():
                    put_down.add_metric((each.id, stage), count)
        return [put_down]

    def _of_stock(self, store: StoreFigures) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        stored = Gauge(
            "headrace_dead_letters_stored",
            "Dead letters that are kept on disk, also of deleted pipelines.",
            labels=("pipeline", "stage"),
        )
        for each in store.letters:
            stored.add_metric((each.pipeline, each.stage), each.letters)
        replayed = Counter(
            "headrace_dead_letters_replayed",
            "Dead letters that have gone through in replays.",
            value=store.letters_replayed,
        )
        dropped = Counter(
            "headrace_dead_letters_dropped",
            "Dead letters that went to make room for later ones.",
            value=store.letters_dropped,
        )
        return stored, replayed, dropped

    def _of_buckets(self) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        by_bucket = ("bucket",)
        keys = Gauge("headrace_bucket_keys", "Keys that a bucket holds.", labels=by_bucket)
        evictions = Counter(
            "headrace_bucket_evictions",
            "Keys that had to go because a new one came to a full bucket.",
            labels=by_bucket,
        )
        for each in self.buckets:
            keys.add_metric((each.name,), each.keys)
            evictions.add_metric((each.name,), each.evictions)
        return keys, evictions

    def _of_parts(self, parts: Sequence[StoredPart]) -> Sequence[Metric]:
        from prometheus_client.core import GaugeMetricFamily as Gauge

        by_part = ("pipeline", "target", "part")
        size = Gauge("headrace_stored_bytes", "Bytes that are kept on disk.", labels=by_part)
        entries = Gauge(
            "headrace_stored_entries",
            "Entries that are kept on disk; a post is one, whatever the number of its messages.",
            labels=by_part,
        )
        age = Gauge(
            "headrace_stored_oldest_seconds",
            "How long the oldest of them has been there; 0 where there is none.",
            labels=by_part,
        )
        # A pipeline may have the id and the targets of one that was deleted and has left something: of
        # two figures with the same labels Prometheus would take none.
        for labels, same in groupby(sorted(parts, key=_place), key=_place):
            alike = [*same]
            size.add_metric(labels, sum(each.bytes for each in alike))
            entries.add_metric(labels, sum(each.entries for each in alike))
            oldest = min(
                (each.oldest for each in alike if each.oldest is not None), default=self.now
            )
            age.add_metric(labels, max(0, self.now - oldest) / 1000)  # clocks are set back
        return size, entries, age

    def _of_store(self, store: StoreFigures) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge
        from prometheus_client.core import SummaryMetricFamily as Summary

        free = Gauge("headrace_store_free_bytes", "Bytes that are free on the disk of the store.")
        if store.free_bytes is not None:
            free.add_metric((), store.free_bytes)
        failures = Counter(
            "headrace_store_failures",
            "How often something could not be stored, also because there was no room.",
            value=store.failures,
        )
        damaged = Counter(
            "headrace_store_damaged",
            "Stored entries that were not what was written, and were set aside, and how often the file of"
            " the store, or its log, was found damaged.",
            value=store.damaged,
        )
        commits = Summary(
            "headrace_store_commit_seconds",
            "Commits of the store (_count), and how long they took together (_sum).",
            count_value=store.commits,
            sum_value=store.commit_seconds_total,
        )
        return free, failures, damaged, commits


def _place(part: StoredPart) -> tuple[str, str, str]:
    return part.pipeline, part.target, part.part


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/metrics",
        operation="getMetrics",
        tag="health",
        access=Access.READ,
        summary="Read what every pipeline counts, every bucket holds, the store keeps and the process uses,"
        " for Prometheus.",
        responses={200: Answer("The figures.", PlainText, media_type="text/plain")},
        respond=get_metrics,
    ),
)
