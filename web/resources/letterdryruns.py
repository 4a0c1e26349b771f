"""Dry runs of dead letters over the API: what a replay of one would send, and what would be made of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.authoring.dryrun.run import ChainDryRun
from headrace.authoring.dryrun.stage import BY_ERROR
from headrace.compiler.annotated import Count
from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import LIST_OF, PipelineConfig
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.letterreplay.letterlook import LetterLook
from headrace.compiler.runtime.limitedthreads import TimeLimit
from headrace.compiler.runtime.monitoring.replayfigures import ChangedSettings
from headrace.web import apierror
from headrace.web.resources.dryruns import DryRun, copied_of
from headrace.web.resources.dryruns.dryrun_answers import (
    DryRunNotes,
    Excerpt,
    PipelineDryRunFailed,
    PipelineDryRunRan,
    PipelineDryRunResponse,
)

FromThere = Annotated[
    PipelineDryRunResponse | None,
    Meta(
        description="What the transforms from there on would make of the messages, as a dry run of them"
        " tells it; their indices are those of the pipeline. Null: it goes into an output, or the input can"
        " make nothing of it."
    ),
]


class DeadLetterDryRun(msgspec.Struct):
    """What a replay of one dead letter would come to, as far as that is known without one."""

    stage: Annotated[Stage, Meta(description="What it would go into.")]
    component: Annotated[Count, Meta(description="Index of that, in the list of its stage.")]
    kind: str
    messages: Annotated[
        list[JsonValue],
        Meta(
            description="What would be sent there, 200 messages at most: of an arrival what the input makes"
            " of it, for an output what it would write."
        ),
    ]
    failure: Annotated[
        str | None, Meta(description="Why the input could make nothing of it. Null: it can.")
    ]
    transformed: FromThere
    fails: Annotated[
        bool | None,
        Meta(
            description="Whether something of it would fail, there or further on, as far as that shows."
            " Null: it goes into an output, and nobody knows."
        ),
    ]
    config_changed: Annotated[
        bool, Meta(description="Whether the pipeline has another config than when it failed.")
    ]
    changed: ChangedSettings
    warnings: Annotated[list[str], Meta(description="Of the input.")]
    notes: DryRunNotes


def of_letter(
    look: LetterLook, config: PipelineConfig, dry_run: DryRun, limit: TimeLimit
) -> DeadLetterDryRun:
    """Return what would become of a letter. Nothing that runs is touched, and nothing is written."""
    excerpt, first, transformed = Excerpt(), look.first_transform, None
    messages = [*look.messages]
    if look.count > len(messages):
        excerpt.notes.append(f"only the first {len(messages)} of {look.count:,} messages were used")
    if look.failure is None and first is not None:
        transformed = _transformed(config, first, messages, dry_run, limit)
    return DeadLetterDryRun(
        look.stage,
        look.index,
        getattr(config, LIST_OF[look.stage])[look.index].kind,
        excerpt.messages(messages),
        look.failure,
        transformed,
        None if first is None and look.failure is None else _fails(transformed),
        look.has_changed,
        look.changed,
        [*look.warnings],
        excerpt.notes,
    )


def _fails(transformed: PipelineDryRunRan | PipelineDryRunFailed | None) -> bool:
    if isinstance(transformed, PipelineDryRunRan):
        return any(each.why.startswith(BY_ERROR) for each in transformed.left or ())
    return True


def _transformed(
    config: PipelineConfig,
    first: int,
    messages: Batch,
    dry_run: DryRun,
    limit: TimeLimit,
) -> PipelineDryRunRan | PipelineDryRunFailed:
    """Return what the transforms from one on make of messages."""
    transforms, state = config.transforms[first:], config.state
    copied = None if state is None else copied_of(dry_run, state.bucket)
    seeds, notes = copied or ({}, [])
    excerpt = Excerpt(notes)
    excerpt.notes += (
        f"transforms[{at}] ('{each.kind}') {each.acts}, in a dry run as well"
        for at, each in enumerate(transforms, first)
        if each.acts
    )
    run = ChainDryRun(
        transforms, dry_run.surroundings, limit, state=state, seeds=seeds, is_traced=True
    )
    run.perform([(0.0, messages)], started_at=dry_run.started_at)
    if run.refusals:
        found = [config.diagnose(fault, ("transforms", first + at)) for at, fault in run.refusals]
        at = run.refusals[0][0]
        said = str(Refused(found[:1]))
        shown = apierror.shown(found)
        return PipelineDryRunFailed(
            first + at, transforms[at].kind, "build", said, shown, [], [], excerpt.notes, []
        )
    stages = [excerpt.stage(stage, is_traced=True) for stage in run.completed]
    left = excerpt.left(run)
    for stage in stages:
        stage.index += first
    for each in left:
        each.at += first
    warnings = [
        f"transforms[{first + probed.index}]: {text}"
        for probed in run.stages
        for text in run.warnings(probed)
    ]
    if (failure := run.failure) is None:
        entries = excerpt.entries(state, run.remembered)
        return PipelineDryRunRan(stages, entries, warnings, excerpt.notes, left)
    return PipelineDryRunFailed(
        first + failure.at,
        transforms[failure.at].kind,
        failure.phase,
        failure.message,
        [],
        stages,
        warnings,
        excerpt.notes,
        left,
    )
