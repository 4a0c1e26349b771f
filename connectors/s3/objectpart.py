"""Parts on their way to an object store: closed, compressed, and then whole objects; or on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import uuid4

import msgspec

from headrace.compiler.delivery import Debt
from headrace.compiler.errors import FailureClass, HeadraceError
from headrace.connectors.disk.packing import PACKINGS
from headrace.connectors.s3.objectkeys import LONGEST_KEY, holds_control

OVERHEAD = 1024
"""Bytes that a part is counted with for itself: parts of one message each are more than the message."""
OWED_BYTES = 256
"""Bytes that are counted for each batch that somebody is to be told of: to remember it takes as much."""
LONGEST_LINE = 8 * 1024
"""Bytes of what stands before a part on the disk: key and upload are the longest of it, and have limits."""


class Content(NamedTuple):
    """The bytes of a part, and what is still to be done with them: ``none``, or a way to compress."""

    body: bytes
    packing: str
    beside: bytes = b""
    """Its messages as lines of JSON, where they may be wanted and do not stand in it."""


class PartSource(Protocol):
    """Where a part is on the disk."""

    place: str
    """What it is called, in words for the log."""
    is_old: bool
    """Whether it is where parts were kept before there was a store."""

    async def content(self, part: ObjectPart) -> Content:
        """Return the bytes of a part.

        Raises:
            OSError, ValueError: they are not there any more.
        """

    def sent(self, part: ObjectPart) -> None:
        """Keep a part no longer: it is where it belongs."""


@dataclass(eq=False, slots=True)
class ObjectPart:
    """An object to be."""

    key: str
    media_type: str
    messages: int
    length: int
    """Bytes of its content, before it is compressed here."""
    content: Content | None
    """None while it is where `source` says, and nowhere else."""
    token: str = field(default_factory=lambda: uuid4().hex)
    """Stands in the object, and nowhere else: whoever finds that under the key has found this part."""
    upload: tuple[str, str] | None = None
    """Key and id of an upload in pieces that was begun and neither completed nor given up."""
    source: PartSource | None = None
    """Where it is on the disk; None: nowhere yet."""
    is_held: bool = False
    """Whether its content stays in memory until it is sent, and is counted there."""
    is_on_its_way: bool = False
    """Whether it is being uploaded."""
    is_late: bool = False
    """Whether it has waited for a while."""
    is_over: bool = False
    """Whether nobody needs it any more: it is sent, or given up."""
    owed: Sequence[Debt] = ()
    """What is owed to those who wait until it is where it outlasts the process."""
    owed_messages: int = 0
    """How many of its messages those are about: they come again if it is lost."""
    compressing: asyncio.Future[None] | None = None
    """That it is being compressed, until that is waited for."""

    @property
    def size(self) -> int:
        """What it takes in memory."""
        content = self.content
        body = 0 if content is None else len(content.body) + len(content.beside)
        return OVERHEAD + body + OWED_BYTES * len(self.owed)

    @property
    def is_ready(self) -> bool:
        """Whether its content is in memory as it is uploaded."""
        return self.content is not None and self.content.packing == "none"

    def prepare(self) -> None:
        """Have the content in memory as it is uploaded. Takes its time."""
        assert self.content is not None
        content = self.content
        if content.packing != "none":
            body = PACKINGS[content.packing].pack(content.body)
            self.content = Content(body, "none", content.beside)

    def settle(self) -> None:
        """Tell those who wait that it is where it outlasts the process, or is counted as lost."""
        owed, self.owed, self.owed_messages = self.owed, (), 0
        for each in owed:
            each.close()


class Declined(HeadraceError):
    """The store does not take this part, whatever it does with others."""

    def __init__(
        self, message: str, failure: FailureClass = "invalid", *, is_certain: bool = False
    ) -> None:
        """Take the class; ``is_certain``: what was said is about this part, and of no other."""
        super().__init__(message)
        self.failure, self.is_certain = failure, is_certain


class Taken(HeadraceError):
    """There is another object under the key of a part."""


class PartHeader(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What stands before the bytes of a part."""

    key: str
    media_type: str
    messages: int
    token: str
    packing: str
    size: int
    upload: tuple[str, str] | None = None
    beside: int = 0
    """Bytes of its messages, which stand behind it."""

    @property
    def is_valid(self) -> bool:
        """Whether an output may have said this."""
        texts = (self.key, self.media_type, self.token, *(self.upload or ()))
        return (
            min(self.size, self.beside, self.messages) >= 0
            and self.packing in ("none", *PACKINGS)
            and 0 < len(self.key.encode()) <= LONGEST_KEY
            and not any(map(holds_control, texts))
        )
