"""What a client has to know of the server: which one it is, how one signs in, and the limits it meets."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.authoring.dryrun import run
from headrace.compiler.annotated import Count, Millis
from headrace.compiler.component import pipelineconfig
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime import connectiontest, limitedthreads, sampling
from headrace.compiler.runtime.monitoring import liveevents, signatures
from headrace.compiler.text import composing
from headrace.web import bodies
from headrace.web.auth.access import Access
from headrace.web.auth.accountauth import Authentication
from headrace.web.endpoint import Answer, Endpoint
from headrace.web.resources import history, ingest, latestfailures, samples, state
from headrace.web.service import Service


class SignInWays(msgspec.Struct):
    """How somebody may sign in; who is, `GET /api/auth/me` tells."""

    password: Annotated[bool, Meta(description="With a name and a password.")]
    token: Annotated[bool, Meta(description="With a token of an identity provider.")]


class ServerLimits(msgspec.Struct):
    """What a client meets; beyond it, requests are refused and answers end."""

    body_bytes: Count = bodies.LARGEST
    ingest_body_bytes: Count = ingest.LARGEST
    document_values: Count = composing.VALUES
    transforms: Count = pipelineconfig.TRANSFORMS
    inputs: Count = pipelineconfig.ENDS
    outputs: Count = pipelineconfig.ENDS
    dry_runs_at_once: Count = limitedthreads.AT_ONCE
    dry_run_messages: Count = run.MOST_MESSAGES
    samples_at_once: Count = sampling.AT_ONCE
    sample_messages: Count = samples.MOST_MESSAGES
    connection_tests_at_once: Count = connectiontest.AT_ONCE
    bucket_entries: Count = state.MOST_ENTRIES
    history_buckets: Annotated[Count, Meta(description="Of all pipelines together.")] = (
        history.MOST_BUCKETS
    )
    failures: Count = latestfailures.LIMIT.most
    failures_of_a_pipeline: Count = signatures.MOST_SIGNATURES
    messages_in_an_event: Count = liveevents.MESSAGES_PER_BATCH


class ServerDto(msgspec.Struct):
    """Which server it is, since when, and what it takes."""

    version: str
    started_at: Millis
    writes_files: Annotated[
        bool, Meta(description="Whether there is a `--data-dir`: without one, no file is written.")
    ]
    sign_in: SignInWays
    limits: ServerLimits


async def get_server(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what a client has to know of the server."""
    doors = service.authenticator
    ways = SignInWays(password=False, token=False)
    if isinstance(doors, Authentication):
        ways = SignInWays(password=bool(len(doors.accounts)), token=doors.tokens is not None)
    resp.data = encode(
        ServerDto(
            version("headrace"),
            service.started_at,
            service.engine.data_dir is not None,
            ways,
            ServerLimits(),
        )
    )


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/server",
        operation="getServer",
        tag="reference",
        access=Access.READ,
        summary="Tell version, start and limits of the server, and how one signs in.",
        responses={200: Answer("The server.", ServerDto)},
        respond=get_server,
    ),
)
