"""The endpoints of the running graph: what runs, one more, one less."""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated

import falcon
import falcon.asgi
import msgspec

from headrace.compiler.annotated import DescribedAs
from headrace.compiler.config.program import load_pipeline
from headrace.compiler.delivery import parts
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.figures import PipelineFigures
from headrace.compiler.runtime.monitoring.pipelinelive import PipelineLive
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, created, read_json_body
from headrace.web.endpoint import BODY, CAPTURED, FAILURE, Answer, Endpoint, refusals
from headrace.web.service import Service

log = logging.getLogger("headrace.web")

EXAMPLE = {
    "id": CAPTURED["pipeline_id"],
    "inputs": [{"type": "http"}],
    "transforms": [
        {
            "type": "filter",
            "Numeric": {"field": "celsius", "operator": "greater_than", "value": 80},
        },
        {
            "type": "map",
            "mappings": [
                {
                    "type": "constant",
                    "as": "site",
                    "value": {"type": "text", "value": "north"},
                }
            ],
        },
    ],
    "outputs": [{"type": "stdout"}],
}


class PipelineDto(PipelineLive, frozen=True):
    """A pipeline that runs, its secrets as templates, and how it is."""

    id: str
    config: Annotated[msgspec.Raw, DescribedAs("Config")]


async def list_pipelines(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what runs now: the runtime, not a file."""
    told = list[bytes]()
    for some in parts(await service.engine.pipelines()):
        told += map(pipeline_dto, some)
        await service.clock.sleep(0)
    resp.data = b"[%b]" % b",".join(told)


async def get_pipeline(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer one pipeline, and which config it has."""
    answer_pipeline(resp, await service.engine.pipeline(pipeline_id))


async def create_pipeline(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Build and start one pipeline; nothing is left of one that is refused."""
    body = await read_json_body(req)
    engine = service.engine
    load = partial(
        load_pipeline,
        catalogue=service.catalogue,
        running=[*engine.names()],
        connections=dict(engine.connections),
        buckets=sorted(engine.declarations),
        base=engine.base,
    )
    # In a thread, and one at a time: a config as large as a body may be takes seconds to read.
    config, diagnostics = await req.in_turn(
        service.reading, created, body, load, "pipeline", "could not be started"
    )
    figures = await engine.compile(config)
    for diagnostic in diagnostics:
        log.warning("pipeline '%s' %s: %s", figures.id, diagnostic.path, diagnostic.message)
    service.changed("pipelines", figures.id, req.scope)
    resp.status = falcon.HTTP_201
    resp.data = pipeline_dto(figures)


async def delete_pipeline(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """End one pipeline; what it wrote is complete when the answer is there."""
    await service.engine.dispose(pipeline_id)
    service.changed("pipelines", pipeline_id, req.scope)
    resp.status = falcon.HTTP_204


def answer_pipeline(resp: falcon.asgi.Response, figures: PipelineFigures) -> None:
    """Answer one pipeline: in `ETag` the version of its config, whatever else of it changes."""
    resp.etag = figures.version
    resp.data = pipeline_dto(figures)


def pipeline_dto(figures: PipelineFigures) -> bytes:
    """Return a `PipelineDto`. Id and config were encoded once, and not of every request anew."""
    return b"%b,%b" % (figures.text[:-1], encode(figures.live)[1:])


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/pipelines",
        operation="listPipelines",
        tag="pipelines",
        access=Access.READ,
        summary="List what runs now: the runtime, not the file.",
        responses={200: Answer("The pipelines.", list[PipelineDto])},
        respond=list_pipelines,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines",
        operation="createPipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Build a pipeline and run it. Nothing is written to disk.",
        body="Config",
        example=EXAMPLE,
        responses={
            201: Answer("It runs, or its outputs are still coming up.", PipelineDto),
            **BODY,
            **refusals(
                _409="The id is already running, or the pipeline was deleted while it was being created.",
                _422="The config cannot be built; nothing was started.",
            ),
        },
        respond=create_pipeline,
    ),
    Endpoint(
        method="GET",
        path="/api/pipelines/{pipeline_id}",
        operation="getPipeline",
        tag="pipelines",
        access=Access.READ,
        summary="Tell what runs under an id.",
        is_versioned=True,
        responses={
            200: Answer("The pipeline.", PipelineDto),
            **refusals(_404="No pipeline under that id."),
        },
        respond=get_pipeline,
    ),
    Endpoint(
        method="DELETE",
        path="/api/pipelines/{pipeline_id}",
        operation="deletePipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="End a pipeline and finish its outputs. Pipelines that read from it keep running.",
        responses={
            204: Answer("It is gone."),
            **refusals(_404="No pipeline under that id.", _500=FAILURE),
        },
        respond=delete_pipeline,
    ),
)
