"""The one table of endpoints: routes, OpenAPI and access checks are all folded from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from headrace.web import connections, dryruns, health, metrics, pipelines, reference, state
from headrace.web.access import Access
from headrace.web.asgi import Asgi
from headrace.web.events import EventStream
from headrace.web.ingest import Ingest
from headrace.web.service import Service

Responder = Callable[..., Awaitable[None]]
"""Answers a request that falcon routed: service, request, response, what the path captures."""

JSON = "application/json"
EVENTS_PATH = "/events"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response: what it means, and the schema of its body, if it has one."""

    meaning: str
    schema: str | None = None
    is_list: bool = False
    media_type: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One row. Either ``respond`` answers behind falcon, or what ``ahead`` makes does before it."""

    method: str
    path: str
    operation: str
    tag: str
    access: Access
    summary: str
    responses: Mapping[int, Answer]
    body: str | None = None
    """Schema of the request body."""
    respond: Responder | None = None
    ahead: Callable[[Service], Asgi] | None = None


def refusals(**meanings: str) -> dict[int, Answer]:
    """Return failing responses, ``_404="..."``: they all have the same body."""
    return {int(key[1:]): Answer(said, "ApiError") for key, said in meanings.items()}


FAILURE = "A failure of the server; its log says more."


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/pipelines",
        operation="listPipelines",
        tag="pipelines",
        access=Access.READ,
        summary="List what runs now: the runtime, not the file.",
        responses={200: Answer("The pipelines.", "PipelineDto", is_list=True)},
        respond=pipelines.list_pipelines,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines",
        operation="createPipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Build a pipeline and run it. Nothing is written to disk.",
        body="Config",
        responses={
            201: Answer("It runs, or its outputs are still coming up.", "PipelineDto"),
            **refusals(
                _400="The body is not JSON.",
                _409="The id is already running, or the pipeline was deleted while it was being created.",
                _413="The body is larger than 2 MiB.",
                _415="The body says that it is something else than JSON.",
                _422="The config cannot be built; nothing was started.",
                _500=FAILURE,
            ),
        },
        respond=pipelines.create_pipeline,
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
        respond=pipelines.delete_pipeline,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines/{pipeline_id}/messages",
        operation="ingestMessages",
        tag="pipelines",
        access=Access.PUBLIC,
        summary="Post one message, or an array of messages as one batch, to an http input.",
        body="IngestRequest",
        responses={
            202: Answer("Queued, not yet processed.", "IngestResponse"),
            **refusals(
                _400="The body is not JSON.",
                _401="The input's own credential was not presented.",
                _404="No pipeline under that id, or it has no http input.",
                _413="The body is larger than 16 MiB.",
                _500=FAILURE,
                _503="The pipeline's queue is full; nothing was taken, so send it again.",
            ),
        },
        ahead=Ingest,
    ),
    Endpoint(
        method="POST",
        path="/api/scripts/dry-run",
        operation="dryRunScript",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Show what a script would emit. Nothing that runs is touched.",
        body="DryRunRequest",
        responses={
            200: Answer("What it emitted, or why it does not compile or run.", "DryRunResponse"),
            **refusals(
                _400="The body is not JSON or not such a request, or its script cannot be read.",
                _413="The body is larger than 2 MiB.",
                _415="The body says that it is something else than JSON.",
                _500=FAILURE,
                _503="Too many dry runs wait for their turn; try again later.",
            ),
        },
        respond=dryruns.dry_run_script,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines/dry-run",
        operation="dryRunPipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Show what every transform of a chain would hand on. Nothing that runs is touched.",
        body="PipelineDryRunRequest",
        responses={
            200: Answer(
                "What each stage handed on, or which of them failed and why.",
                "PipelineDryRunResponse",
            ),
            **refusals(
                _400="The body is not JSON or not such a request: an unknown kind of transform.",
                _413="The body is larger than 2 MiB.",
                _415="The body says that it is something else than JSON.",
                _500=FAILURE,
                _503="Too many dry runs wait for their turn; try again later.",
            ),
        },
        respond=dryruns.dry_run_pipeline,
    ),
    Endpoint(
        method="GET",
        path="/api/connections",
        operation="listConnections",
        tag="connections",
        access=Access.READ,
        summary="List the connections that a component can name, by name.",
        responses={200: Answer("The connections; secrets as they are written.", "Connections")},
        respond=connections.list_connections,
    ),
    Endpoint(
        method="POST",
        path="/api/connections",
        operation="createConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="File a connection for pipelines that are built later. Nothing is written to disk.",
        body="CreateConnectionRequest",
        responses={
            201: Answer("It is filed as it is answered.", "CreateConnectionRequest"),
            **refusals(
                _400="The body is not JSON.",
                _409="The name is taken.",
                _413="The body is larger than 2 MiB.",
                _415="The body says that it is something else than JSON.",
                _422="It is no connection; nothing was filed.",
                _500=FAILURE,
            ),
        },
        respond=connections.create_connection,
    ),
    Endpoint(
        method="DELETE",
        path="/api/connections/{connection_id}",
        operation="deleteConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="Remove a connection that no pipeline names.",
        responses={
            204: Answer("It is gone."),
            **refusals(
                _404="No connection of that name.",
                _409="Pipelines name it, and the answer names them.",
                _500=FAILURE,
            ),
        },
        respond=connections.delete_connection,
    ),
    Endpoint(
        method="GET",
        path="/api/state",
        operation="listStateBuckets",
        tag="state",
        access=Access.READ,
        summary="List the buckets that the config declares, with what they hold and may hold.",
        responses={200: Answer("The buckets, by name.", "BucketSummary", is_list=True)},
        respond=state.list_state_buckets,
    ),
    Endpoint(
        method="GET",
        path="/api/state/{bucket}",
        operation="getStateBucket",
        tag="state",
        access=Access.READ,
        summary="Read the entries of a bucket that were written last.",
        responses={
            200: Answer("At most 200 entries, and how many there are.", "BucketContents"),
            **refusals(_404="No bucket of that name is declared."),
        },
        respond=state.get_state_bucket,
    ),
    Endpoint(
        method="GET",
        path=EVENTS_PATH,
        operation="streamEvents",
        tag="events",
        access=Access.READ,
        summary="Follow batches and failures live: a sample, not a durable feed.",
        responses={
            200: Answer("Server-sent events.", "UiEvent", media_type="text/event-stream"),
        },
        ahead=EventStream,
    ),
    Endpoint(
        method="GET",
        path="/api/docs",
        operation="listComponents",
        tag="reference",
        access=Access.PUBLIC,
        summary="List every input, transform, output and connection that can be built.",
        responses={200: Answer("The components.", "ComponentDoc", is_list=True)},
        respond=reference.list_components,
    ),
    Endpoint(
        method="GET",
        path="/api/openapi.json",
        operation="getOpenApi",
        tag="reference",
        access=Access.PUBLIC,
        summary="Describe the served routes.",
        responses={200: Answer("An OpenAPI 3.1 document.", "OpenApi")},
        respond=reference.get_openapi,
    ),
    Endpoint(
        method="GET",
        path="/api/reference",
        operation="apiReference",
        tag="reference",
        access=Access.PUBLIC,
        summary="Show the description as a page.",
        responses={200: Answer("The page.", "Text", media_type="text/html")},
        respond=reference.api_reference,
    ),
    Endpoint(
        method="GET",
        path="/api/reference/{asset}",
        operation="referenceAsset",
        tag="reference",
        access=Access.PUBLIC,
        summary="Fetch a script or a style sheet of the page.",
        responses={
            200: Answer("The file.", "Text", media_type="text/*"),
            **refusals(_404="No such file."),
        },
        respond=reference.reference_asset,
    ),
    Endpoint(
        method="GET",
        path="/livez",
        operation="getLiveness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the process is alive.",
        responses={200: Answer("It is.", "Health")},
        respond=health.live,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        operation="getReadiness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the pipelines are loaded and requests are wanted.",
        responses={
            200: Answer("They are.", "Health"),
            **refusals(_503="Starting or shutting down."),
        },
        respond=health.ready,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        operation="getMetrics",
        tag="health",
        access=Access.READ,
        summary="Read what every pipeline counts and every bucket holds, for Prometheus.",
        responses={200: Answer("The figures.", "Text", media_type="text/plain")},
        respond=metrics.get_metrics,
    ),
)
