"""What is told live: events, and what somebody who listens wants to be told of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MESSAGES_PER_BATCH = 100
"""Messages of a batch that are shown, to who asks for no fewer."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, rendered once for all who are told of it. Without a name: the JSON of a UiEvent.

    One that could not be rendered has the name ``fault`` and says why: ``error`` is what a browser calls
    a lost connection.
    """

    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lagged:
    """How many events this listener has missed."""

    count: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Run:
    """Events one after the other, never none. All who are told the same are given the same run."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Interest:
    """What a listener wants to be told of: by default all batches and failures, and nothing else."""

    batches: frozenset[str] | None = None
    """The pipelines whose batches are shown; None: all."""
    failures: frozenset[str] | None = None
    """The pipelines whose failures are told; None: all."""
    messages: int = MESSAGES_PER_BATCH
    """Messages that are shown of a batch."""
    changes: bool = False
    """Whether it is told of each `Change`."""
    named: frozenset[str] = frozenset()
    """The names of the events about outages that it is told of."""

    def shows(self, pipeline: str) -> bool:
        """Return whether batches of a pipeline are shown."""
        return self.batches is None or pipeline in self.batches

    def tells(self, pipeline: str) -> bool:
        """Return whether failures of a pipeline are told."""
        return self.failures is None or pipeline in self.failures


ALL = Interest()

Changed = Literal["pipelines", "connections", "layout", "config"]


class Change(msgspec.Struct, frozen=True):
    """Something that a client has changed: what is to be asked for again."""

    what: Annotated[
        Changed, Meta(description="`config`: what is on file, or whether a save is due.")
    ]
    id: Annotated[
        str | None, Meta(description="The pipeline or connection; null: any of them, or none.")
    ]
    by: Annotated[str | None, Meta(description="The account; null on a server without accounts.")]
