"""What happens in a play: what arrives when, what is away when, and what servers answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import eq
from typing import Any, Literal

from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import FailureClass

START = datetime(2026, 1, 1, tzinfo=UTC)
"""What the wall shows at 0 s, unless something else is said."""

ComponentAt = tuple[str, Stage, int]
"""A component: the id of its pipeline, its family, its index."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """What arrives at an input at once: a batch, or bytes where the input decodes what arrives.

    ``meta`` is told of it in an envelope, beside what the input knows by itself.
    """

    payload: Batch | bytes
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GivenArrival:
    """Something arrives at an input; nothing: its connection is lost."""

    at: float
    to: tuple[str, int]
    arriving: Arriving | None


@dataclass(frozen=True, slots=True)
class GivenState:
    """Something is written to a bucket: names under keys."""

    at: float
    bucket: str
    values: Mapping[str, Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True)
class BucketLook:
    """A bucket is looked at, behind all that is given at the moment."""

    at: float
    bucket: str


@dataclass(frozen=True, slots=True)
class ServerOutage:
    """What is wrong with the other side of an input or an output, from one moment up to another.

    ``slow``: a write takes ``seconds``. ``refuses``: of each ``of`` batches the first ``refused``, as a
    failure of a class, or those with messages that are ``like`` something. ``unanswered``: of so many
    batches those are taken, and nobody is told.
    """

    begins: float
    ends: float
    kind: Literal["down", "slow", "refuses", "unanswered"]
    seconds: float = 0.0
    refused: int = 1
    of: int = 1
    failure: FailureClass | None = None
    """The class that a refusal has; None: nothing is said of it, and it is about the content."""
    is_selective: bool = False
    """Whether only what has messages ``like`` something is refused."""
    like: JsonValue = None
    """As a test expects values, matchers among them."""
    says: str = ""
    """In which words it is refused, if not in the usual ones."""


@dataclass(frozen=True, slots=True)
class ProcessKill:
    """The process is killed, behind what is due at a moment and before what is given at it.

    With ``commit`` it lives on from there and is killed at the commit of that number, counted from 1, with
    that or without.
    """

    at: float
    until: float
    """When it starts again, the same moment at the earliest. Infinite: it does not."""
    commit: int = 0
    is_committed: bool = False
    """Whether that commit is made: then nobody has heard of it."""


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """What a server answers to one request. Units: seconds from the request to the reply."""

    status: int = 200
    body: JsonValue = None
    is_down: bool = False
    after: float = 0.0
    raw: bytes | None = None
    """The body where it is no JSON."""


Replies = Callable[[Batch], ScriptedReply | str]
"""Returns what is answered to a batch, or why nothing is."""


@dataclass(frozen=True)
class Scenario:
    """All that happens in a play. What happens at one moment does so in the order it is given here."""

    steps: Sequence[GivenArrival | GivenState | BucketLook] = ()
    until: float = 0.0
    """When everything is ended, as at the stop of a server."""
    started_at: datetime = START
    outages: Mapping[ComponentAt, Sequence[ServerOutage]] = field(default_factory=dict)
    kills: Sequence[ProcessKill] = ()
    full: Sequence[tuple[float, float]] = ()
    """From when to when the disk of the store is full."""
    matches: Callable[[JsonValue, JsonValue], bool] = eq
    """Returns whether a message is as it is written (`ServerOutage.like`)."""
    replies: Mapping[tuple[str, int], Replies] = field(default_factory=dict)
    """By the pipeline and the index of an `http` transform."""
    feeds_all: bool = False
    """Whether every input is fed by the steps, also those that read posts, pipelines or the time."""
    asks: bool = False
    """Whether `http` transforms ask their servers, and not ``replies``."""
    seed: str = ""
    """What made-up messages are made of."""
    ends_on_failure: bool = False
    """Whether nothing happens any more once something has failed."""
    max_moments: int | None = DEFAULT_MAX_MOMENTS
    """How many moments may pass at which timers are due, beside `MOMENTS_EACH` for each step that is taken;
    None: something else bounds it."""
    patience: float = 5.0
    """How long the time stands still for a server that is asked. Units: seconds of real time."""
