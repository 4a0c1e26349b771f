"""What runs: to list, create and remove it, to give it messages, to try it without running it."""

from __future__ import annotations

from headrace.web import examples
from headrace.web.auth.access import Access
from headrace.web.endpoint import BODY, FAILURE, Answer, Endpoint, refusals
from headrace.web.resources import history, pipelines, samples
from headrace.web.resources.dryruns import responders as dryruns
from headrace.web.resources.ingest import Ingest

ROWS: tuple[Endpoint, ...] = (
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
        example=examples.PIPELINE,
        responses={
            201: Answer("It runs, or its outputs are still coming up.", "PipelineDto"),
            **BODY,
            **refusals(
                _409="The id is already running, or the pipeline was deleted while it was being created.",
                _422="The config cannot be built; nothing was started.",
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
    *history.ROWS,
    Endpoint(
        method="POST",
        path="/api/pipelines/{pipeline_id}/messages",
        operation="ingestMessages",
        tag="pipelines",
        access=Access.PUBLIC,
        summary="Post one message, or an array of messages as one batch, to an http input.",
        body="IngestRequest",
        example=examples.MESSAGES,
        responses={
            202: Answer("Queued, not yet processed.", "IngestResponse"),
            **refusals(
                _400="The body is not JSON.",
                _401="The input's own credential was not presented.",
                _404="No pipeline under that id, or it has no http input.",
                _413="The body is larger than 16 MiB.",
                _415="The body has a content encoding, such as gzip.",
                _500=FAILURE,
                _503="There is no room for it in the queue; nothing was taken, so send it again.",
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
        example=examples.SCRIPT_DRY_RUN,
        responses={
            200: Answer("What it emitted, or why it does not compile or run.", "DryRunResponse"),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request, or its script cannot be read.",
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
        example=examples.PIPELINE_DRY_RUN,
        responses={
            200: Answer(
                "What each stage handed on, or which of them failed and why.",
                "PipelineDryRunResponse",
            ),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request: an unknown kind of transform.",
                _503="Too many dry runs wait for their turn; try again later.",
            ),
        },
        respond=dryruns.dry_run_pipeline,
    ),
    *samples.ROWS,
)
