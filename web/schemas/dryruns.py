"""What dry runs answer."""

from __future__ import annotations

from headrace.web.schemas.shapes import (
    COUNT,
    COUNT_OR_NULL,
    OBJECT,
    TEXT,
    Schema,
    list_of,
    object_of,
    outcomes_of,
    ref,
    word_of,
)

_BATCHES = list_of(list_of({}))
_ORIGINS = {
    **list_of(list_of(list_of(COUNT))),
    "description": "Per batch and message, the messages of the request that it came from.",
}
_ENTRIES: Schema = {
    "type": "object",
    "description": "Key to values by name, at most 200 keys, the latest first.",
    "additionalProperties": OBJECT,
}
_WARNINGS = {**list_of(TEXT), "description": "What a running pipeline would log."}
_NOTES = {**list_of(TEXT), "description": "What is not as one might think."}
_LEFT = list_of(ref("LeftMessage"))

BODIES: dict[str, Schema] = {
    **outcomes_of(
        "DryRun",
        emitted=object_of(
            batches=_BATCHES,
            warnings={**list_of(TEXT), "description": "Different texts, in order."},
            state=_ENTRIES,
            notes=_NOTES,
        ),
        failed=object_of(
            stage=ref("DryRunStage"),
            message=TEXT,
            line=COUNT_OR_NULL,
            column=COUNT_OR_NULL,
        ),
    ),
    **outcomes_of(
        "PipelineDryRun",
        ran=object_of(
            ["left"],
            stages=list_of(ref("PipelineDryRunStage")),
            buckets=_ENTRIES,
            warnings=_WARNINGS,
            notes=_NOTES,
            left=_LEFT,
        ),
        failed=object_of(
            ["left"],
            at={**COUNT, "description": "Index of the transform."},
            kind=TEXT,
            phase=word_of("build", "apply"),
            message=TEXT,
            diagnostics=list_of(ref("Diagnostic")),
            stages=list_of(ref("PipelineDryRunStage")),
            warnings=_WARNINGS,
            notes=_NOTES,
            left=_LEFT,
        ),
    ),
    "DryRunStage": word_of("compile", "runtime"),
    "PipelineDryRunStage": object_of(
        ["origins", "on_flush_origins"],
        index=COUNT,
        kind=TEXT,
        batches={**_BATCHES, "description": "Handed on because messages came."},
        on_flush={**_BATCHES, "description": "Let go of later, and what others made of that."},
        origins=_ORIGINS,
        on_flush_origins=_ORIGINS,
    ),
    "LeftMessage": object_of(message=COUNT, at=COUNT, kind=TEXT, why=TEXT),
}
