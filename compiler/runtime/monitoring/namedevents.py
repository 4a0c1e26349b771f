"""What is told live of outages that are bridged, dead letters and the store, to who asks for it by name."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count, Millis
from headrace.compiler.component.families import Stage
from headrace.compiler.errors import FailureClass


class WaitingEvent(msgspec.Struct, frozen=True, rename={"failure": "class"}):
    """A component waits until the other side is there, or somebody has acted."""

    pipeline_id: str
    stage: Stage
    component: Annotated[Count, Meta(description="Index in the list of its stage.")]
    failure: FailureClass
    why: str
    ts: Millis


class GoingOnEvent(msgspec.Struct, frozen=True):
    """A component waits no longer: what it had is written, or the outage lasted too long for it."""

    pipeline_id: str
    stage: Stage
    component: Annotated[Count, Meta(description="Index in the list of its stage.")]
    ts: Millis


class DeadLettersEvent(msgspec.Struct, frozen=True):
    """Dead letters were put down: the first of what failed alike, then how many more, once a second."""

    pipeline_id: str
    stage: str
    component: Annotated[Count | None, Meta(description="Index in its list; null for inputs.")]
    message: Annotated[str, Meta(description="What went wrong, as failures are told apart.")]
    count: Annotated[Count, Meta(description="How many letters.")]
    ts: Millis


class StoreEvent(msgspec.Struct, frozen=True):
    """The store takes nothing, or does again, or something of it is damaged."""

    what: Annotated[
        Literal["open", "full", "failing", "damaged"],
        Meta(
            description="`full`: there is no room on its disk. `failing`: that cannot be written. `open`:"
            " it takes entries again. `damaged`: something was not what had been written."
        ),
    ]
    why: str
    ts: Millis


NamedEvent = WaitingEvent | GoingOnEvent | DeadLettersEvent | StoreEvent

NAMED_EVENTS: dict[type, str] = {
    WaitingEvent: "waiting",
    GoingOnEvent: "going-on",
    DeadLettersEvent: "dead-letters",
    StoreEvent: "store",
}
"""What each is called on the stream."""
