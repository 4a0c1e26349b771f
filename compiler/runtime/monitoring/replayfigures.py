"""What is told of replays of dead letters: that one has begun, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count

ReplayState = Literal["running", "done", "stopped", "failed"]


ChangedSettings = Annotated[
    Sequence[str],
    Meta(
        description="The settings of the pipeline that are others than when one of them failed, named as in"
        " a plan, but no deeper than a component. Of letters of an older version it is not known."
    ),
]


class BegunReplay(msgspec.Struct, frozen=True):
    """A replay that has begun."""

    replay: Annotated[Count, Meta(description="Its number.")]
    selected: Annotated[Count, Meta(description="How many dead letters are replayed.")]
    config_changed: Annotated[
        bool,
        Meta(description="Whether the pipeline has another config than when one of them failed."),
    ]
    changed: ChangedSettings = ()


class ReplayFigures(msgspec.Struct, frozen=True):
    """How far a replay has come, or had come when it was over."""

    replay: Annotated[Count, Meta(description="Its number.")]
    selected: Annotated[Count, Meta(description="How many dead letters are replayed.")]
    done: Annotated[Count, Meta(description="How many have gone through, and are deleted.")]
    failed: Annotated[
        Count, Meta(description="How many have failed again, or could not be read; they stay.")
    ]
    state: Annotated[
        ReplayState,
        Meta(
            description="`running`; `done`: all have been tried; `stopped`, by somebody or because the"
            " pipeline has ended; `failed`: something is wrong with the pipeline, and the log says what."
        ),
    ]
