"""What pipelines remember."""

from __future__ import annotations

from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.resources import state

ROWS: tuple[Endpoint, ...] = (
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
)
