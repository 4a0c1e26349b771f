"""What buckets remember as it goes into the database of a store and comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headrace.compiler.durablebucket import KeyChange
from headrace.compiler.store.storeerrors import StoreFailed

KEY_BYTES = 40
"""What a key takes on the disk beside itself and its values, roughly."""


class BucketChanges(NamedTuple):
    """What has changed in one bucket."""

    bucket: int
    """Its number among the queues."""
    keys: Sequence[KeyChange]
    bytes: int
    """How many bytes are written, roughly."""

    @classmethod
    def together(cls, parts: Sequence[BucketChanges]) -> BucketChanges:
        """Return several changes of a bucket as one: of a key that came again the last one counts."""
        if len(parts) == 1:
            return parts[0]
        latest = {each[0]: each for part in parts for each in part.keys}
        return cls(parts[0].bucket, [*latest.values()], sum(part.bytes for part in parts))

    @property
    def is_new(self) -> bool:
        """Whether something is written, and not only deleted."""
        return any(values is not None for _, _, _, values in self.keys)


RememberedKey = tuple[int, str, int, bytes]
"""A key as it is there: the number of its last change, the key, when that was, and its values."""


class RememberedPage(NamedTuple):
    """Some keys of a bucket, in no order that matters."""

    keys: list[RememberedKey]
    damaged: list[bytes]
    """The keys, as they are there, of what is not what was written."""
    last: bytes
    """The next page begins behind this key."""
    is_last: bool


class JoinedKeys(NamedTuple):
    """Some keys of a bucket in the order of the keys, joined as it takes least to read them."""

    keys: bytes
    """The keys, each but the last with a line feed behind it; none has one."""
    values: bytes
    """The same of what is under each: checksum, number, time and values."""
    rows: list[bytes]
    """The values, one by one."""
    checksums: list[int]
    """What the checksum of each should be."""
    last: bytes
    """The next ones begin behind this key."""


class ChangedBucket(Protocol):
    """Whoever is asked for what has changed as something is committed."""

    def gather(self, most: int) -> BucketChanges:
        """Return what has changed, so many keys at most."""

    def ended(self, cause: StoreFailed | None) -> None:
        """Hear that it is committed, or why it is not: then it is asked for again."""

    def begin_anew(self) -> None:
        """Hear that the database was made anew of what could be read: all of it is to be written again."""
