"""What runs, what it remembers and what it tells."""

from __future__ import annotations

from headrace.web.resources.events import NAMED
from headrace.web.schemas.shapes import (
    COUNT,
    COUNT_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    Schema,
    list_of,
    object_of,
    ref,
    word_of,
)

_FIELD = object_of(
    name=TEXT,
    type_name=TEXT,
    field_type={"type": ["string", "object"], "description": "A word, or an object of one key."},
    description=TEXT_OR_NULL,
    required={"type": "boolean"},
)

BODIES: dict[str, Schema] = {
    "PipelineDto": object_of(
        id=TEXT,
        config=ref("Config"),
        status=word_of("starting", "running", "stopped", "failed"),
    ),
    "IngestRequest": {"description": "An array is one batch; anything else is one message."},
    "IngestResponse": object_of(accepted=COUNT),
    "UiEvent": object_of(
        ["count"],
        pipeline_id=TEXT,
        stage=word_of("input", "transform", "output"),
        ts={"type": "integer", "description": "Milliseconds since 1970."},
        seq={"type": "integer", "description": "Per pipeline; a gap is what was missed."},
        component=COUNT_OR_NULL,
        payload={"oneOf": [ref("BatchPayload"), ref("ErrorPayload")]},
        count={
            "type": "integer",
            "minimum": 1,
            "description": "Of an error: how many it tells of.",
        },
    ),
    "BatchPayload": object_of(batch=ref("BatchPreview")),
    "ErrorPayload": object_of(error=TEXT),
    "BatchPreview": object_of(messages=list_of(TEXT), total=COUNT, skipped_messages=COUNT),
    "NamedEvents": list_of(word_of(*NAMED)),
    "LaggedEvent": {"type": "integer", "minimum": 1, "description": "Events that were missed."},
    "FaultEvent": {**TEXT, "description": "Why an event could not be made."},
    "PingEvent": {**object_of(), "description": "A sign of life; the object is empty."},
    "ComponentDoc": object_of(
        kind=TEXT,
        family=word_of("input", "transform", "output", "connection"),
        description=TEXT_OR_NULL,
        fields=list_of(ref("FieldDoc")),
        variants=list_of(ref("VariantDoc")),
        metadata=list_of(ref("MetadataDoc")),
    ),
    "FieldDoc": _FIELD,
    "VariantDoc": object_of(name=TEXT, fields=list_of(ref("FieldDoc"))),
    "MetadataDoc": object_of(name=TEXT, description=TEXT),
    "Health": object_of(status=TEXT),
    "OpenApi": OBJECT,
    "Text": TEXT,
}
