"""What is told of the files."""

from __future__ import annotations

from headrace.web.schemas.shapes import COUNT, TEXT, TEXT_OR_NULL, Schema, list_of, object_of, ref

_IDS: Schema = list_of(TEXT)
_WHY: Schema = {
    **list_of(TEXT),
    "description": "Settings that differ, and what it was built on that is something else by now.",
}
_HELD: Schema = {**COUNT, "description": "Messages that its buffers let go early."}
_IN_FLIGHT: Schema = {**COUNT, "description": "Batches on their way, which go through first."}

BODIES: dict[str, Schema] = {
    "SettingsDto": object_of(
        config_file={**TEXT_OR_NULL, "description": "Bare name; null without a config file."},
        save_directory=TEXT,
        unsaved_changes={
            "type": "boolean",
            "description": "Whether a save would write another graph than was loaded or saved last.",
        },
    ),
    "SaveConfigResponse": object_of(path=TEXT),
    "RevertPlan": object_of(
        pipelines=ref("PipelinesPlan"),
        connections=ref("ConnectionsPlan"),
        buckets=ref("BucketsPlan"),
    ),
    "PipelinesPlan": object_of(
        kept={**_IDS, "description": "Those that go on undisturbed."},
        added=_IDS,
        changed=list_of(ref("ChangedPipeline")),
        removed=list_of(ref("RemovedPipeline")),
    ),
    "ChangedPipeline": object_of(id=TEXT, why=_WHY, held=_HELD, in_flight=_IN_FLIGHT),
    "RemovedPipeline": object_of(id=TEXT, held=_HELD, in_flight=_IN_FLIGHT),
    "ConnectionsPlan": object_of(added=_IDS, changed=_IDS, removed=_IDS),
    "BucketsPlan": object_of(
        kept=_IDS,
        added=_IDS,
        changed=list_of(ref("EmptiedBucket")),
        removed=list_of(ref("EmptiedBucket")),
    ),
    "EmptiedBucket": object_of(name=TEXT, keys={**COUNT, "description": "Keys that it loses."}),
}
