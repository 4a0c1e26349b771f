"""Gates: what a bucket has to hold before a buffer lets go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from headrace.compiler.buckets import WHOLE, Bucket
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.states import no_state
from headrace.compiler.schema.fields import BucketName, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.conditions import Condition, all_hold


class Gate(Record):
    """Open while all its conditions hold for what a bucket holds under one key.

    What any pipeline writes under that key is looked at there and then. What has not been written, or
    has expired, leaves the gate closed; that it expires is seen when the next batch arrives.
    """

    conditions: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        "What has to hold, all of it, of the remembered values: their names are the fields.",
        elsewhere="condition when where",
    )
    bucket: str | None = option(
        BucketName(),
        "A bucket that the config declares; left out, that of the pipeline.",
        default=None,
    )
    key: str | None = option(
        Text(),
        "Key to look under, taken as it stands; left out, what concerns the bucket as a whole.",
        default=None,
    )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Refuse a gate of which nobody says which bucket it looks at."""
        if self.bucket is None and not context.has_state:
            expected = "'bucket' in 'until', or 'state' on the pipeline"
            yield replace(no_state("'until'"), expected=expected)

    def kept(self, ctx: Context) -> Gatekeeper:
        """Return who looks whether it is open. May refuse; watches nothing yet."""
        key = WHOLE if self.key is None else self.key
        return Gatekeeper(ctx.bucket(self.bucket), key, self.conditions)


class Gatekeeper:
    """Looks at one key of a bucket, and tells when something is written there."""

    __slots__ = ("_bucket", "_holds", "_key")

    def __init__(self, bucket: Bucket, key: str, conditions: Sequence[Condition]) -> None:
        self._bucket = bucket
        self._key = key
        self._holds = all_hold(conditions)

    def is_open(self) -> bool:
        """Return whether there is an entry by now and all conditions hold for it."""
        return self._holds(
            self._bucket.get(self._key)
        )  # where there is none, every field is missing

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        """Have ``told`` called after every write under the key; return what ends that."""
        return self._bucket.watch(self._key, told)
