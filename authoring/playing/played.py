"""What came of a play."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.authoring.playing.scenario import ComponentAt, ProcessKill
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import FailureClass
from headrace.compiler.runtime.monitoring.losses import LossReason
from headrace.compiler.text.diagnostics import Fault, Path

TakenBranch = tuple[str, str, Path, str]
"""A pipeline, the place of a component in it, a path in that, and which branch was taken there."""

END = math.inf
"""The moment of what is let go because everything ends."""

BatchTimeline = list[tuple[float, Batch]]
"""Batches, each with its moment in seconds."""


@dataclass(frozen=True, slots=True)
class SaidAt:
    """What a component said: a failure or a warning. Units: seconds since the play began."""

    at: float
    place: str
    """Such as ``press-7.transforms[3]``; without an index where no component is known."""
    text: str


@dataclass(frozen=True, slots=True)
class PlayedLetter:
    """A dead letter that is on the disk when everything is over."""

    place: str
    """Of the component that failed, as in `SaidAt`; of an input that of the input."""
    stage: str
    """``input``, ``transform``, ``output``, or ``process``: it has ended the process."""
    failure: FailureClass
    text: str
    """What was said, and in particular of what is in it."""
    messages: Batch | None
    """None: an input could make no messages of it."""
    payload: bytes = b""
    """What an input could make no messages of."""

    @property
    def count(self) -> int:
        """How many messages it is; a payload counts as one."""
        return 1 if self.messages is None else len(self.messages)


@dataclass
class Played:
    """What came of a play."""

    handed_on: dict[str, BatchTimeline] = field(default_factory=lambda: defaultdict(list))
    """By pipeline, what left its last transform."""
    made: dict[tuple[str, int], BatchTimeline] = field(default_factory=lambda: defaultdict(list))
    """By pipeline and index, what left a transform that was asked for."""
    written: dict[tuple[str, int], BatchTimeline] = field(default_factory=lambda: defaultdict(list))
    """By pipeline and index, what an output has written."""
    acknowledged: dict[tuple[str, int], list[tuple[float, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By pipeline and index, when which arrival of an input was acknowledged, counted from 0."""
    failures: list[SaidAt] = field(default_factory=list)
    warnings: list[SaidAt] = field(default_factory=list)
    states: dict[tuple[str, float], Mapping[str, Mapping[str, JsonValue]]] = field(
        default_factory=dict
    )
    """By bucket and moment, what it held when it was looked at: names and values by key."""
    taken: Counter[TakenBranch] = field(default_factory=Counter)
    """How often which branch was taken. Those that are decided for each message tell only if the chain is
    a counting one."""
    objections: list[tuple[ComponentAt, Fault]] = field(default_factory=list)
    """Which components could not be built, and why: then nothing was played."""
    refused: Counter[str] = field(default_factory=Counter)
    """By pipeline, posts that were not taken because its queue was full."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """By pipeline, posts that the process did not answer before it was killed, or that came while there was
    none: they may have been taken."""
    lost: Counter[tuple[ComponentAt, LossReason]] = field(default_factory=Counter)
    """By component and reason, how many messages went no further; what only a process had that was killed
    is not counted by anybody."""
    letters: list[PlayedLetter] = field(default_factory=list)
    """The dead letters at the end, in the order in which they were put down."""
    survived: list[ProcessKill] = field(default_factory=list)
    """Kills that did not come about: there were not as many commits."""
