"""What a sample answers."""

from __future__ import annotations

from headrace.web.schemas.shapes import (
    COUNT,
    TEXT,
    Schema,
    list_of,
    object_of,
    outcomes_of,
    ref,
    word_of,
)

_NOTES = {
    **list_of(TEXT),
    "description": "What was different from a pipeline, what was skipped, what went wrong.",
}

BODIES: dict[str, Schema] = {
    **outcomes_of(
        "Sample",
        sampled=object_of(
            messages={**list_of({}), "description": "In the order they arrived."},
            notes=_NOTES,
            waited_ms=COUNT,
        ),
        failed=object_of(
            ["diagnostics"],
            stage=ref("SampleStage"),
            message=TEXT,
            diagnostics={
                **list_of(ref("Diagnostic")),
                "description": "All that is wrong with the input, at the stage `build`.",
            },
            notes=_NOTES,
        ),
    ),
    "SampleStage": word_of("build", "read"),
}
