"""A pipeline gets another config while it runs, as a revert would give it one; and what that would cost."""

from __future__ import annotations

import logging
from functools import partial

import falcon.asgi

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.editing import load_edited
from headrace.compiler.errors import ChangedMeanwhile
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, created, read_json_body
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.preconditions import versions_read
from headrace.web.resources.pipelines import EXAMPLE, PipelineDto, answer_pipeline
from headrace.web.resources.revert import RevertPlan, told
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


async def exchange_pipeline(
    service: Service, req: Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Give a pipeline the config in the body, unless somebody has given it another one meanwhile."""
    engine = service.engine
    before = await engine.pipeline(pipeline_id)
    seen = versions_read(req, is_required=True)
    if seen is not None and before.version not in seen:
        raise ChangedMeanwhile(f"pipeline '{pipeline_id}'")
    config = await _read(service, req, pipeline_id)
    answer_pipeline(resp, await engine.exchange(pipeline_id, config, seen))
    service.changed("pipelines", pipeline_id, req.scope)


async def plan_exchange(
    service: Service, req: Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer what an exchange would do. Nothing is built for that, and nothing changes."""
    engine = service.engine
    await engine.pipeline(pipeline_id)
    plan = await engine.plan_exchange(pipeline_id, await _read(service, req, pipeline_id))
    resp.data = encode(told(plan))


async def _read(service: Service, req: Request, id: str) -> PipelineConfig:
    """Return the config in a body, judged in the place of the one that runs.

    Raises:
        falcon.HTTPError: see `read_json_body` and `Request.in_turn`.
        MalformedBody, Refused: see `created`.
    """
    body = await read_json_body(req)
    engine = service.engine
    load = partial(
        load_edited,
        catalogue=service.catalogue,
        running=engine.configs(),
        id=id,
        connections=dict(engine.connections),
        buckets=sorted(engine.declarations),
        base=engine.base,
    )
    config, diagnostics = await req.in_turn(
        service.reading, created, body, load, "pipeline", "was not exchanged"
    )
    for diagnostic in diagnostics:
        log.warning("pipeline '%s' %s: %s", id, diagnostic.path, diagnostic.message)
    return config


_REFUSED = "The config is refused, or is that of another id; what ran goes on as it was."

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="PUT",
        path="/api/pipelines/{pipeline_id}",
        operation="exchangePipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Give a pipeline another config, as a revert does: what it has taken goes through first.",
        is_versioned=True,
        body="Config",
        example=EXAMPLE,
        responses={
            200: Answer(
                "It runs, or its outputs are still coming up.",
                PipelineDto,
            ),
            **BODY,
            **refusals(
                _400="The body is not JSON, or `If-Match` has no ETag.",
                _404="No pipeline under that id.",
                _412="It has another config by now; it was not exchanged.",
                _422=_REFUSED,
                _428="There is no `If-Match`.",
                _500="A server turned down what the config says: the pipeline is `failed`.",
            ),
        },
        respond=exchange_pipeline,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines/{pipeline_id}/plan",
        operation="planExchange",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Tell what another config would change of a pipeline, and what that costs.",
        body="Config",
        example=EXAMPLE,
        responses={
            200: Answer("The plan; nothing is built for it.", RevertPlan),
            **BODY,
            **refusals(_404="No pipeline under that id.", _422=_REFUSED),
        },
        respond=plan_exchange,
    ),
)
