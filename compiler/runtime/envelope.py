"""Putting metadata on messages, as an input's envelope says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import Source
from headrace.compiler.language.envelopes import Envelope, Wrap


class Enclose(NamedTuple):
    """How messages that share one origin get their metadata."""

    metadata: Callable[[Any], dict[str, Any]]
    """Return what is told of an origin, now."""
    put_on: Callable[[Batch, dict[str, Any]], Batch]
    """Return messages with that metadata; fewer where some cannot have it."""


def enclosing(
    envelope: Envelope | None,
    source: Source,
    *,
    pipeline: str,
    kind: str,
    clock: Clock,
    warn_once: Callable[[str], None],
) -> Enclose | None:
    """Return what puts the envelope on, or None where there is none.

    ``received_at`` is when it arrived here: an input buffer behind this does not change it.
    """
    if envelope is None:
        return None

    def metadata(origin: Any) -> dict[str, Any]:
        about = {"pipeline": pipeline, "input": kind, **source.describe(origin)}
        about["received_at"] = clock.timestamp()
        return about

    if isinstance(envelope, Wrap):
        meta, payload = envelope.meta_field, envelope.payload_field

        def wrap(batch: Batch, about: dict[str, Any]) -> Batch:
            return [{meta: about, payload: message} for message in batch]

        return Enclose(metadata, wrap)

    field: str = envelope.meta_field  # type: ignore[attr-defined]  # the other variant
    combine = source.merges_metadata

    def merged(message: dict[str, JsonValue], about: dict[str, Any]) -> JsonValue:
        there = message.get(field)
        if combine and isinstance(there, dict):
            return {**message, field: {**there, **{k: about[k] for k in about if k not in there}}}
        warn_once(f"envelope: the messages have a field '{field}' of their own; it is replaced")
        return {**message, field: about}

    def merge(batch: Batch, about: dict[str, Any]) -> Batch:
        enclosed = []
        for message in batch:
            if type(message) is not dict:
                warn_once("envelope: skipped a message that is not an object: merge needs one")
            elif field in message:
                enclosed.append(merged(message, about))
            else:
                enclosed.append({**message, field: about})
        return enclosed

    return Enclose(metadata, merge)
