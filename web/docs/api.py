"""The tables of the API page: endpoints, limits and figures, from what serves, keeps and counts them."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from headrace.compiler import edges, jsontext
from headrace.compiler.component import pipelineconfig
from headrace.compiler.config.retention import DEFAULT_RETENTION, MOST_RETENTION
from headrace.compiler.runtime import graphchanges, outputs, pipeline
from headrace.compiler.runtime.capturing import captures
from headrace.compiler.runtime.monitoring import (
    channel,
    failures,
    pipelinehistory,
    pipelinerecord,
    pulses,
    signatures,
    watch,
)
from headrace.compiler.runtime.monitoring.bucketfigures import BucketFigures
from headrace.compiler.runtime.monitoring.figures import ComponentOutage, PipelineFigures
from headrace.compiler.runtime.monitoring.letterfigures import LetterStock
from headrace.compiler.runtime.monitoring.liveevents import MESSAGES_PER_BATCH
from headrace.compiler.runtime.monitoring.losses import ComponentLoss
from headrace.compiler.runtime.monitoring.pipelinelive import PipelineLive
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart, StoreFigures
from headrace.compiler.text import composing
from headrace.web import bodies
from headrace.web.docs.markdown import RegionTexts, code, table
from headrace.web.endpoint import Endpoint
from headrace.web.process import server
from headrace.web.resources import ENDPOINTS, events, ingest, signin, state
from headrace.web.resources.metrics import Scrape

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LIMITS = (
    ("body of an ingest request", f"{ingest.LARGEST // 2**20} MiB"),
    ("body of a login", f"{signin.LARGEST // 1024} KiB"),
    ("body with a token to sign in with", f"{signin.LARGEST_TOKEN // 1024} KiB"),
    ("any other request body", f"{bodies.LARGEST // 2**20} MiB"),
    ("lists and objects inside each other", str(jsontext.MAX_DEPTH)),
    ("values in one document: a file, or a body that is no messages", f"{composing.VALUES:,}"),
    ("transforms of a pipeline", str(pipelineconfig.TRANSFORMS)),
    ("inputs of a pipeline, and outputs", f"{pipelineconfig.ENDS:,} each"),
    ("batches in the inbox of a `pipeline` input", str(edges.INBOX_BATCHES)),
    ("outputs coming up before a create answers `starting`", f"{graphchanges.OPENING_SECONDS:g} s"),
    ("a pipeline ending", f"{graphchanges.ENDING_SECONDS + pipeline.LAST_SECONDS:g} s"),
    ("requests finishing at shutdown", f"{server.REQUEST_SECONDS} s"),
    ("an idle connection", f"{server.IDLE_SECONDS} s"),
    ("entries on one page of a bucket", str(state.MOST_ENTRIES)),
    ("text after which a page of a bucket ends", f"{state.MOST_BYTES // 2**20} MiB"),
    (
        "history goes back, unless the settings say otherwise",
        f"{DEFAULT_RETENTION // 3600} h",
    ),
    ("history goes back at most", f"{MOST_RETENTION // 86400} days"),
    ("history by five seconds goes back at most", f"{pipelinerecord.FINE_SECONDS // 60} min"),
    ("counters are read for history", f"every {pipelinehistory.SAMPLE_SECONDS:g} s"),
    ("history of deleted pipelines, together", f"{pipelinehistory.MOST_ENDED_BYTES // 2**20} MiB"),
    ("distinct failures kept per pipeline", str(signatures.MOST_SIGNATURES)),
    ("a failure's text", f"{failures.MOST_BYTES} bytes"),
    ("messages in a batch event", str(MESSAGES_PER_BATCH)),
    ("a message in a batch event", f"{failures.MOST_BYTES} bytes"),
    ("batch events of one pipeline", f"one pass per {watch.QUIET_SECONDS * 1000:g} ms"),
    ("events of one failure", f"one per {watch.FAILURE_PAUSES[-1] * 1000:g} ms"),
    ("different failures of one component that are told apart meanwhile", str(failures.MOST_TEXTS)),
    ("events waiting for one listener", str(channel.MOST_WAITING)),
    ("captures at a time", str(captures.AT_ONCE)),
    (
        "what waits for the reader of one, beside one record that is larger",
        f"{captures.MOST_WAITING_BYTES // 2**20} MiB",
    ),
    ("pulses", f"every {pulses.PULSE_SECONDS:g} s"),
    (
        "nothing is taken of what an output sent before it is `waiting`",
        f"{outputs.WAITING_SECONDS:g} s",
    ),
    ("comments that keep an event stream alive", f"every {events.KEEP_ALIVE_SECONDS:g} s"),
)
"""What a client meets, and the bound it has."""

LIVE = PipelineLive("running", 0, "ok", (), (), ())
LOSS = ComponentLoss("transform", 0, "error", 0)
OUTAGE = ComponentOutage("output", 0, None, 0)
PIPELINE = PipelineFigures("p", b"{}", LIVE, 0, 0, 0, {"input": 0}, (LOSS,), (OUTAGE,), 0, 0, {})
BUCKET = BucketFigures("b", 0, 1, None, 0)
PART = StoredPart(1, "p", "http", "journal", 0, 0, None, "open", left_over=False)
LETTERS = LetterStock("p", "output", 0, 0, 0)
STORE = StoreFigures("open", 0, 0, 0, 0.0, 0, [PART], [LETTERS])
"""Of which figures are made, to see the labels that they have."""


def pages() -> dict[str, RegionTexts]:
    """Return the generated parts of the page."""
    endpoints = [
        (_request(each), code(each.operation), each.access.name.lower(), each.summary)
        for each in ENDPOINTS
    ]
    answers = [
        (_request(each), str(status), answer.meaning)
        for each in ENDPOINTS
        for status, answer in each.responses.items()
        if status != HTTPStatus.INTERNAL_SERVER_ERROR  # which any of them may answer
    ]
    figures = [_figure(family) for family in Scrape([PIPELINE], [BUCKET], STORE, 0).own()]
    return {
        "api.md": {
            "endpoints": table(("request", "operation", "access", "what it does"), endpoints),
            "answers": table(("request", "status", "meaning"), answers),
            "limits": table(("what", "limit"), LIMITS),
            "metrics": table(("name", "type", "labels", "meaning"), figures),
        }
    }


def _request(endpoint: Endpoint) -> str:
    return code(f"{endpoint.method} {endpoint.path}")


def _figure(family: Metric) -> tuple[str, str, str, str]:
    # The text format adds this to the name of a counter.
    name = family.name + ("_total" if family.type == "counter" else "")
    labels = ", ".join(map(code, family.samples[0].labels))
    return code(name), family.type, labels, family.documentation
