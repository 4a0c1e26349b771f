"""The one table of endpoints: routes, OpenAPI and access checks are all folded from it."""

from headrace.web.endpoint import Endpoint
from headrace.web.endpoints import (
    config,
    connections,
    health,
    pipelines,
    reference,
    signin,
    watching,
)
from headrace.web.resources import state

ENDPOINTS: tuple[Endpoint, ...] = (
    *pipelines.ROWS,
    *connections.ROWS,
    *state.ROWS,
    *watching.ROWS,
    *config.ROWS,
    *signin.ROWS,
    *reference.ROWS,
    *health.ROWS,
)
