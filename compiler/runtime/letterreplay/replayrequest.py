"""What is asked of a replay: which letters, through which pipeline, into what, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch

RATE = 100.0
"""Messages a second, unless somebody says otherwise."""


class ReplayTarget(NamedTuple):
    """Where letters go in: at an input, before a transform, into an output."""

    stage: Stage
    at: int
    """The index in the list of its stage."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Which letters are to go through a pipeline once more, and how."""

    pipeline: str
    source: str
    """The pipeline whose letters they are."""
    ids: Sequence[int] | None = None
    """None: all of the stage and message."""
    stage: str | None = None
    message: str | None = None
    target: ReplayTarget | None = None
    """Where they go in; None: where each has failed."""
    component: int | None = None
    """In place of a target: the index of a transform or an output, whichever has failed on all of them."""
    rate: float = RATE
    """Messages a second."""
    edited: Batch | None = None
    """What goes in the place of the messages of the one letter."""
