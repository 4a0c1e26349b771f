"""The one table of endpoints: routes, OpenAPI and access checks are all folded from it."""

from headrace.web.endpoint import Endpoint
from headrace.web.resources import (
    config,
    connections,
    events,
    health,
    history,
    ingest,
    layout,
    metrics,
    pipelines,
    reference,
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
    *reference.ROWS,
    *health.ROWS,
    *metrics.ROWS,
)
