"""What a pipeline did: counts by the minute or by five seconds, and how it failed.

An id that nobody knows has an empty past, which is no mistake of who asks.
"""

from __future__ import annotations

import falcon.asgi
import msgspec

from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.history import Past
from headrace.compiler.runtime.records import Resolution
from headrace.compiler.runtime.rings import Buckets
from headrace.web.service import Service


class HistoryBucket(msgspec.Struct, gc=False):
    """A bucket as the API shows it. A week has ten thousand of them, and these encode quickly."""

    start: int
    inbound: int
    outbound: int
    errors: int


async def get_pipeline_history(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer the past of a pipeline; a resolution that cannot be read is the coarse one."""
    resolution: Resolution = "fine" if req.get_param("resolution") == "fine" else "coarse"
    resp.data = encode(_told(resolution, service.engine.history.past(pipeline_id, resolution)))


def _told(resolution: Resolution, past: Past) -> dict[str, object]:
    return {
        "resolution": resolution,
        "bucket_secs": past.buckets.width,
        "buckets": _listed(past.buckets),
        "errors": past.failures,
        "dropped_signatures": past.dropped_signatures,
    }


def _listed(buckets: Buckets) -> list[HistoryBucket]:
    counts = buckets.counts
    starts = range(buckets.start, buckets.start + len(buckets) * buckets.width, buckets.width)
    return list(map(HistoryBucket, starts, counts[::3], counts[1::3], counts[2::3]))
