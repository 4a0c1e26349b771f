"""What becomes of a stored entry that has ended the process again and again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.journal import Journal, StoredEntry

log = logging.getLogger("headrace.store")


def set_aside(
    place: ComponentContext, entry: StoredEntry, journal: Journal | None, messages: int
) -> None:
    """Keep an entry out of the way, as a dead letter if there are any, and tell of it as an error.

    ``journal``: what it was handed out by; None: that is closed, and the entry comes again.
    ``messages``: how many are in it.
    """
    why = f"set aside: the process ended {entry.deaths} times while it was under way"
    group = place.keep_entry(why, entry.payload, messages)
    if journal is not None:
        if group is None:
            journal.set_aside(entry.number)
        else:
            journal.let_go([entry.number], group)
    log.error("pipeline '%s' %s: %s", place.pipeline, place.place, why)
