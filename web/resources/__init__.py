"""What the server answers, a file per resource; and all of them in the one table of endpoints.

Routes, OpenAPI and access checks are all folded from it.
"""

from __future__ import annotations

from headrace.web.endpoint import Endpoint
from headrace.web.resources import (
    about,
    capture,
    config,
    configcheck,
    configtext,
    connections,
    console,
    dryruns,
    events,
    exchange,
    health,
    history,
    ingest,
    latestfailures,
    layout,
    letterreplays,
    letters,
    metrics,
    pipelines,
    revert,
    samples,
    serverinfo,
    signin,
    state,
    stored,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *pipelines.ROWS,
    *exchange.ROWS,
    *history.ROWS,
    *latestfailures.ROWS,
    *ingest.ROWS,
    *dryruns.ROWS,
    *samples.ROWS,
    *connections.ROWS,
    *state.ROWS,
    *stored.ROWS,
    *letters.ROWS,
    *letterreplays.ROWS,
    *events.ROWS,
    *capture.ROWS,
    *config.ROWS,
    *configcheck.ROWS,
    *configtext.ROWS,
    *revert.ROWS,
    *layout.ROWS,
    *signin.ROWS,
    *serverinfo.ROWS,
    *about.ROWS,
    *console.ROWS,
    *health.ROWS,
    *metrics.ROWS,
)

STREAMS = frozenset(each.path for each in ENDPOINTS if each.is_stream)
"""The paths of what goes on until the client leaves, or for long."""
