"""What the components of one pipeline share, and what they register by way of their contexts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.compiler.component.buildcontext import Release
from headrace.compiler.component.families import Stage
from headrace.compiler.component.states import PipelineState
from headrace.compiler.jsontext import Decoding
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.lowering.lines import SliceShare
from headrace.compiler.runtime.deadletters import DeadLetters
from headrace.compiler.runtime.dependencies import Dependencies
from headrace.compiler.runtime.keptbuckets import StoredFirst
from headrace.compiler.runtime.monitoring.namedevents import NamedEvent
from headrace.compiler.runtime.outage import OutageBridge
from headrace.compiler.runtime.wayin import WayIn
from headrace.compiler.schema.redaction import Hidden

if TYPE_CHECKING:
    from headrace.compiler.runtime.keptqueue import KeptLent


@dataclass(frozen=True, slots=True)
class Hold:
    """One place where messages are held on purpose."""

    count: Callable[[], int]
    release: Release | None
    stage: Stage
    component: int
    most: int | None
    """Messages that may be held, if anything but time bounds them."""


@dataclass(slots=True)
class Registrations:
    """What all components of one pipeline have in common, or have asked their contexts for."""

    pipeline: str
    state: PipelineState | None = None
    counters: Counters = field(default_factory=Counters)
    decoding: Decoding = field(default_factory=Decoding)
    dependencies: Dependencies = field(default_factory=Dependencies)
    awaits: bool = False
    """Whether a transform waits for somebody: then batches leave after their pass."""
    slices: SliceShare = field(default_factory=SliceShare)
    """Its transforms that go on after a pause."""
    way_in: WayIn | None = None
    hidden: Hidden = field(default_factory=Hidden)
    """The credentials that its components were given, hidden wherever nobody knows whose they are."""
    holding: list[Hold] = field(default_factory=list)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    coming_again: list[Callable[[], bool]] = field(default_factory=list)
    """Of each input: whether all that it handed out and that is not acknowledged comes again."""
    is_deleted: bool = False
    """Whether it ends as its pipeline is deleted or exchanged, and does not just stop."""
    is_withdrawn: bool = False
    """Whether it was refused, or given up before it ran."""
    is_disposed: bool = False
    """Whether it ends as somebody has deleted its pipeline."""
    outages: list[OutageBridge] = field(default_factory=list)
    """Of the components that bridge them."""
    tell: Callable[[NamedEvent], None] = field(default=lambda _: None)
    """Tells whoever listens that a component waits or goes on, or of dead letters."""

    kept: list[KeptLent[Any]] = field(default_factory=list)
    """What its components keep on the disk."""
    letters: DeadLetters | None = None
    """What puts down what cannot be done, where its pipeline says so."""

    stored_first: StoredFirst | None = None
    """What waits for the disk, where it remembers in a bucket that is durable."""

    @property
    def comes_again(self) -> bool:
        """Whether nothing is lost of what is not written at the end."""
        return bool(self.coming_again) and all(each() for each in self.coming_again)

    @property
    def held(self) -> int:
        """Messages held on purpose by buffers."""
        return sum(each.count() for each in self.holding)

    def lasts(self) -> bool:
        """Return whether what enters now leaves after its pass."""
        return self.awaits or self.slices.paused > 0
