"""Parts on their way to an object store: numbered, filled, closed, compressed, and then whole objects."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from io import BytesIO
from typing import NamedTuple, Protocol
from uuid import uuid4
from weakref import WeakValueDictionary

from headrace.compiler.errors import HeadraceError
from headrace.connectors.disk.parts import PACKINGS, PartFormat, number_of, renumbered

OVERHEAD = 1024
"""Bytes that a part is counted with for itself: parts of one message each are more than the message."""
MOST_TIMES = 10_000
"""Of how many seconds and prefixes the numbers are remembered, for one bucket."""
LONGEST_SKIP = 1_000
"""How many numbers an output leaves to another server at a time."""


class OpenPart:
    """A part that is being filled."""

    def __init__(self, key: str, form: PartFormat, packing: str) -> None:
        """Take the key that it will have, and how it will be compressed: ``none``, or in which way."""
        self._key, self._form, self._packing = key, form, packing
        self._body = BytesIO()
        self.messages = 0

    @property
    def size(self) -> int:
        """What it takes in memory."""
        return self._body.tell()

    def append(self, rows: bytes, messages: int) -> None:
        """Add a batch, which is encoded already."""
        self._body.write(self._form.between if self.messages else self._form.begin)
        self._body.write(rows)
        self.messages += messages

    def closed(self) -> ObjectPart:
        """Return it as it is to be uploaded."""
        self._body.write(self._form.end)
        packing = PACKINGS.get(self._packing)
        body = self._body.getvalue()
        return ObjectPart(
            key=self._key,
            media_type=(packing or self._form).media_type,
            messages=self.messages,
            length=len(body),
            content=Content(body, self._packing),
        )


class Content(NamedTuple):
    """The bytes of a part, and what is still to be done with them: ``none``, or a way to compress."""

    body: bytes
    packing: str

    def packed(self) -> Content:
        """Return what is uploaded. Takes its time."""
        packing = PACKINGS.get(self.packing)
        return self if packing is None else Content(packing.pack(self.body), "none")


class ContentSource(Protocol):
    """Where the content of a part is, that is not in memory."""

    @property
    def place(self) -> str:
        """What it is called, in words for the log."""

    def content(self, part: ObjectPart) -> Content:
        """Return it. Takes its time.

        Raises:
            OSError, ValueError: it is not there any more.
        """

    def sent(self, part: ObjectPart) -> None:
        """Note that it is needed no more."""

    def close(self) -> None:
        """Leave what was not sent to whoever comes next."""


@dataclass(eq=False, slots=True)
class ObjectPart:
    """An object to be."""

    key: str
    media_type: str
    messages: int
    length: int
    """Bytes of its content, before it is compressed here."""
    content: Content | None
    """None while it is where `source` says."""
    token: str = field(default_factory=lambda: uuid4().hex)
    """Stands in the object, and nowhere else: whoever finds that under the key has found this part."""
    upload: tuple[str, str] | None = None
    """Key and id of an upload in pieces that was begun and neither completed nor given up."""
    source: ContentSource | None = None
    compressing: asyncio.Future[None] | None = None
    """That it is being compressed, until that is waited for."""

    @property
    def size(self) -> int:
        """What it takes in memory."""
        return OVERHEAD + (0 if self.content is None else len(self.content.body))

    @property
    def is_ready(self) -> bool:
        """Whether its content is in memory as it is uploaded."""
        return self.content is not None and self.content.packing == "none"

    def prepare(self) -> None:
        """Have the content in memory as it is uploaded. Takes its time."""
        content = self.content
        if content is None:
            assert self.source is not None
            content = self.source.content(self)
        self.content = content.packed()

    def put_back(self) -> None:
        """Have what is elsewhere not in memory as well."""
        if self.source is not None:
            self.content = None


class Declined(HeadraceError):
    """The store does not take this part, whatever it does with others."""


class Taken(HeadraceError):
    """There is another object under the key of a part."""


class PartStore(Protocol):
    """Who takes parts."""

    async def open(self, prefix: str) -> None:
        """Reach it, and learn whether it takes parts under that prefix.

        Raises:
            BuildRefused: it says no.
            Unreachable: it does not answer, or not now.
        """

    async def send(self, part: ObjectPart) -> None:
        """Put a part under its key. One that is there already is not put there again.

        Raises:
            Unreachable: nothing is taken now, whatever the reason.
            Declined: this part is not.
            Taken: there is another object.
        """

    async def close(self) -> None:
        """Hang up."""


class BucketNumbers:
    """The last number that was given out in each second and below each prefix of one bucket.

    No two outputs of this process give the same one to a name. In a store that does not know conditions
    they would look first and put then, both at a time, and who is second overwrites.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, stem: str, least: int) -> int:
        """Give out a number that is new there, and at least so large."""
        number = max(least, self._last.get(stem, 0) + 1)
        self.note(stem, number)
        return number

    def note(self, stem: str, number: int) -> None:
        """Give out no number there that is not larger."""
        self._last[stem] = max(number, self._last.get(stem, 0))
        if len(self._last) > MOST_TIMES:
            del self._last[next(iter(self._last))]


_BUCKETS: WeakValueDictionary[tuple[str | None, str], BucketNumbers] = WeakValueDictionary()


def bucket_numbers(endpoint: str | None, bucket: str) -> BucketNumbers:
    """Return what all outputs to that bucket have in common, as long as there are any."""
    return _BUCKETS.setdefault((endpoint, bucket), BucketNumbers())


class PartNumbers:
    """The numbers of one output: from 1 on, without those that another one has given out."""

    def __init__(self, given: BucketNumbers) -> None:
        self._given, self._last = given, 0

    def numbered(self, key: str) -> str:
        """Return the key of a part, whatever its number is, with the next one."""
        self._last = self._given.next(renumbered(key, 0), self._last + 1)
        return renumbered(key, self._last)

    def passed_on(self, key: str) -> str:
        """Return the key of a part whose name another server was faster to take.

        Some way on, where that one does not come soon: side by side, they would meet at every part.
        """
        self._last += random.randrange(LONGEST_SKIP)
        return self.numbered(key)

    def note(self, key: str) -> None:
        """Give no part the name of one that an earlier run has left."""
        if (number := number_of(key)) is not None:
            self._given.note(renumbered(key, 0), number)
