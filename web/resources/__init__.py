"""What the server answers, a file per resource; and all of them in the one table of endpoints.

Routes, OpenAPI and access checks are all folded from it.
"""

from __future__ import annotations

from headrace.web.endpoint import Endpoint
from headrace.web.resources import (
    about,
    config,
    connections,
    dryruns,
    events,
    health,
    history,
    ingest,
    layout,
    metrics,
    pipelines,
    revert,
    samples,
    signin,
    state,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *pipelines.ROWS,
    *history.ROWS,
    *ingest.ROWS,
    *dryruns.ROWS,
    *samples.ROWS,
    *connections.ROWS,
    *state.ROWS,
    *events.ROWS,
    *config.ROWS,
    *revert.ROWS,
    *layout.ROWS,
    *signin.ROWS,
    *about.ROWS,
    *health.ROWS,
    *metrics.ROWS,
)
