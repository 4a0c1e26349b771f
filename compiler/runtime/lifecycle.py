"""The life of a pipeline: its phases, and which of them may follow which. Nothing else changes a phase.

NEW ──> STARTING ──> RUNNING ──> STOPPING ──> STOPPED
 │          │           │            │
 └──────────┴───────────┴────────────┴──> FAILED        NEW, STARTING ──> STOPPED
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Literal

Status = Literal["starting", "running", "stopped", "failed"]
"""What others are told of a phase."""


class Phase(Enum):
    """Where a pipeline is in its life."""

    NEW = auto()
    """It is being created, and may still be refused."""
    STARTING = auto()
    """It is there to stay, and waits for outputs that are not up."""
    RUNNING = auto()
    """Its chain is subscribed."""
    STOPPING = auto()
    """Inputs take nothing more; what was taken goes through."""
    STOPPED = auto()
    """Somebody ended it, and all has gone through, or its time is over."""
    FAILED = auto()
    """It ended by itself: its last input is gone, it was turned down, or it broke."""


_STATUS: dict[Phase, Status] = {
    Phase.NEW: "starting",
    Phase.STARTING: "starting",
    Phase.RUNNING: "running",
    Phase.STOPPING: "stopped",
    Phase.STOPPED: "stopped",
    Phase.FAILED: "failed",
}


class Lifecycle:
    """The phase that one pipeline is in. Each method is a transition."""

    __slots__ = ("phase",)

    def __init__(self) -> None:
        self.phase = Phase.NEW

    @property
    def status(self) -> Status:
        """What others are told."""
        return _STATUS[self.phase]

    @property
    def is_over(self) -> bool:
        """Whether no other phase follows."""
        return self.phase in (Phase.STOPPED, Phase.FAILED)

    def start(self) -> None:
        """Stay, and wait for outputs."""
        self._become(Phase.STARTING, Phase.NEW)

    def run(self) -> None:
        """Be subscribed."""
        self._become(Phase.RUNNING, Phase.NEW, Phase.STARTING)

    def stop(self) -> None:
        """Be ended from outside, with all that is on its way."""
        self._become(Phase.STOPPING, Phase.RUNNING)

    def end(self) -> None:
        """Be through, or never have run."""
        self._become(Phase.STOPPED, Phase.NEW, Phase.STARTING, Phase.STOPPING)

    def fail(self) -> None:
        """End by itself."""
        self._become(Phase.FAILED, Phase.NEW, Phase.STARTING, Phase.RUNNING, Phase.STOPPING)

    def _become(self, phase: Phase, *before: Phase) -> None:
        if self.phase not in before:
            raise RuntimeError(f"a pipeline that is {self.phase.name} cannot be {phase.name}")
        self.phase = phase
