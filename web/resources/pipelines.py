"""The endpoints of the running graph: what runs, one more, one less."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import falcon
import falcon.asgi

from headrace.compiler.errors import Refused
from headrace.compiler.language.config import PipelineConfig, load_pipeline
from headrace.compiler.language.diagnostics import Diagnostic, in_file_order
from headrace.compiler.language.families import Connection
from headrace.compiler.runtime.engine import PipelineView
from headrace.web.asking import Request
from headrace.web.bodies import called, document_of, read_json_body
from headrace.web.service import Service

_SLICE = 20
"""Pipelines that are listed before messages have a turn: the first time each is encoded."""

log = logging.getLogger("headrace.web")


async def list_pipelines(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what runs now: the runtime, not a file."""
    texts = list[bytes]()
    for view in service.engine.pipelines():
        if len(texts) % _SLICE == _SLICE - 1:
            await service.clock.sleep(0)
        texts.append(pipeline_dto(view))
    resp.data = b"[" + b",".join(texts) + b"]"


async def create_pipeline(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Build and start one pipeline; nothing is left of one that is refused."""
    body = await read_json_body(req)
    engine = service.engine
    running, buckets = [view.id for view in engine.pipelines()], engine.buckets.names()
    connections = dict(engine.connections)
    # In a thread, and one at a time: a config as large as a body may be takes seconds to read.
    config, diagnostics = await req.in_turn(
        service.reading, _config, body, service, running, buckets, connections
    )
    view = await service.engine.compile(config)
    for diagnostic in diagnostics:
        log.warning("pipeline '%s' %s: %s", view.id, diagnostic.path, diagnostic.message)
    resp.status = falcon.HTTP_201
    resp.data = pipeline_dto(view)


async def delete_pipeline(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """End one pipeline; what it wrote is complete when the answer is there."""
    await service.engine.dispose(pipeline_id)
    resp.status = falcon.HTTP_204


def pipeline_dto(view: PipelineView) -> bytes:
    """Return a pipeline as the API shows it, its secrets as templates."""
    return b'%b,"status":"%b"}' % (view.text()[:-1], view.status.encode())


def _config(
    body: bytes,
    service: Service,
    running: Sequence[str],
    buckets: Sequence[str],
    connections: Mapping[str, Connection],
) -> tuple[PipelineConfig, list[Diagnostic]]:
    """Return the config in a body, and what is odd about it.

    Raises:
        MalformedBody: it is not JSON.
        Refused: with all that is wrong with it.
    """
    document, twice = document_of(body)
    config, diagnostics = load_pipeline(
        document,
        service.catalogue,
        running=running,
        connections=connections,
        buckets=buckets,
        base=service.engine.base,
    )
    if config is None or twice:
        # In the words of the engine's own refusals.
        subject = f"{called('pipeline', document.value)} could not be started"
        raise Refused(in_file_order([*twice, *diagnostics]), subject)
    return config, diagnostics
