"""What happened: counts by time, and distinct failures."""

from __future__ import annotations

from headrace.web.schemas.shapes import (
    COUNT,
    COUNT_OR_NULL,
    TEXT,
    Schema,
    list_of,
    object_of,
    ref,
    word_of,
)

_MILLIS = {**COUNT, "description": "Milliseconds since 1970."}

BODIES: dict[str, Schema] = {
    "PipelineHistory": object_of(
        resolution=ref("HistoryResolution"),
        bucket_secs={"type": "integer", "enum": [60, 5], "description": "Seconds per bucket."},
        buckets={
            **list_of(ref("HistoryBucket")),
            "description": "In a row, the oldest first, empty ones included; the last one still fills.",
        },
        errors={**list_of(ref("ErrorSignature")), "description": "The last seen first."},
        dropped_signatures={**COUNT, "description": "How many failures made room for newer ones."},
    ),
    "HistoryResolution": {**word_of("coarse", "fine"), "default": "coarse"},
    "HistoryBucket": object_of(
        start={**COUNT, "description": "Seconds since 1970, a multiple of the width."},
        inbound={**COUNT, "description": "Messages that the inputs delivered."},
        outbound={**COUNT, "description": "Messages that left the transforms."},
        errors={**COUNT, "description": "Failures, repeated ones included."},
    ),
    "ErrorSignature": object_of(
        stage=word_of("input", "transform", "output"),
        component={**COUNT_OR_NULL, "description": "Index in the list of its stage."},
        message=TEXT,
        first_seen=_MILLIS,
        last_seen=_MILLIS,
        count=COUNT,
    ),
}
