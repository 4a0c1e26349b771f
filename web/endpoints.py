"""The one table of endpoints: routes, OpenAPI and access checks are all folded from it."""

from headrace.web.endpoint import Endpoint
from headrace.web.resources import (
    about,
    config,
    connections,
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
from headrace.web.resources.dryruns import responders as dryruns

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
