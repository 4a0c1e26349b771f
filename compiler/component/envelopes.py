"""Where metadata is put on a message: the two envelopes an input may have.

Metadata is ordinary in-band fields from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from headrace.compiler.component.fieldflow import Shape, either
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.schema.fields import Text
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.diagnostics import Fault

SHARED_METADATA = {
    "pipeline": "Id of the pipeline that reads it.",
    "input": "Kind of the input.",
    "received_at": "When it arrived here (RFC 3339, UTC); not the time of the event.",
}
"""Metadata present for every kind of input."""


Skip = Callable[[str, JsonValue, dict[str, Any]], None]
"""Is told why a message cannot have the metadata, and takes both: they go no further."""

PutOn = Callable[[Batch, dict[str, Any]], Batch]
"""Returns messages with the metadata of their origin; fewer where some cannot have it."""


class Envelope(Tagged):
    """Attaches metadata to each message."""

    wraps: ClassVar[bool] = False
    """Whether the payload, whatever it is, lies under a field of its own."""

    def putting(self, warn_once: Callable[[str], None], skip: Skip, *, is_added: bool) -> PutOn:
        """Return what puts it on; ``is_added``: metadata that is there already stays."""
        raise NotImplementedError

    def enclose(self, fields: Shape, metadata: Shape, *, is_added: bool) -> Shape:
        """Return which fields messages have with it, ``fields`` being theirs.

        ``is_added``: metadata that is there already stays, as behind another pipeline.
        """
        raise NotImplementedError


class Merge(Envelope, tag="merge"):
    """Adds the metadata object as one more field. Skips, with a warning, what is not an object."""

    meta: str = option(Text(), "Field that holds the metadata.", default="_meta")

    @property
    def meta_field(self) -> str:
        """The field, or its default when it is blank."""
        return self.meta.strip() or "_meta"

    def putting(self, warn_once: Callable[[str], None], skip: Skip, *, is_added: bool) -> PutOn:
        """Return what adds one field to each object."""
        field = self.meta_field

        def merged(message: dict[str, JsonValue], about: dict[str, Any]) -> JsonValue:
            there = message.get(field)
            if is_added and isinstance(there, dict):
                return {
                    **message,
                    field: {**there, **{k: about[k] for k in about if k not in there}},
                }
            warn_once(f"envelope: the messages have a field '{field}' of their own; it is replaced")
            return {**message, field: about}

        def merge(batch: Batch, about: dict[str, Any]) -> Batch:
            enclosed = []
            for message in batch:
                if type(message) is not dict:
                    skip(
                        "envelope: skipped a message that is not an object: merge needs one",
                        message,
                        about,
                    )
                elif field in message:
                    enclosed.append(merged(message, about))
                else:
                    enclosed.append({**message, field: about})
            return enclosed

        return merge

    def enclose(self, fields: Shape, metadata: Shape, *, is_added: bool) -> Shape:
        """Return the fields with the metadata under one of them."""
        there = fields.below(self.meta_field)
        about = either(metadata, there) if is_added else metadata
        return fields.with_key(self.meta_field, about)


class Wrap(Envelope, tag="wrap"):
    """Puts the whole payload under one field beside the metadata. Works for any payload."""

    wraps: ClassVar = True

    meta: str = option(Text(), "Field that holds the metadata.", default="_meta")
    payload: str = option(Text(), "Field that holds the payload.", default="value")

    def rules(self) -> Iterator[Fault]:
        """Refuse one name for both."""
        if self.meta_field == self.payload_field:
            yield Fault(
                "conflict",
                f"'meta' and 'payload' both name '{self.meta_field}', so one would overwrite the other",
                expected="two different names",
                path=("payload",),
            )

    @property
    def meta_field(self) -> str:
        """The metadata's field, or its default when it is blank."""
        return self.meta.strip() or "_meta"

    @property
    def payload_field(self) -> str:
        """The payload's field, or its default when it is blank."""
        return self.payload.strip() or "value"

    def putting(self, warn_once: Callable[[str], None], skip: Skip, *, is_added: bool) -> PutOn:
        """Return what makes an object of two fields of each message."""
        meta, payload = self.meta_field, self.payload_field
        return lambda batch, about: [{meta: about, payload: message} for message in batch]

    def enclose(self, fields: Shape, metadata: Shape, *, is_added: bool) -> Shape:
        """Return an object of exactly two fields."""
        return Shape(
            {self.meta_field: metadata, self.payload_field: fields}, closed_by=metadata.closed_by
        )
