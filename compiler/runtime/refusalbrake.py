"""The brake on what is set aside: where nothing passes any more, it is hardly the content."""

from __future__ import annotations

from headrace.compiler.errors import BatchFailed, worded


class RefusalBrake:
    """Counts how many messages of one output were refused in a row, over batches, and none passed.

    At the most it is on: then nothing is set aside, until one message has passed.
    """

    __slots__ = ("in_a_row", "most")

    def __init__(self, most: int) -> None:
        """Take how many messages may be refused in a row, at least one."""
        self.most, self.in_a_row = most, 0

    @property
    def is_on(self) -> bool:
        """Whether nothing is to be set aside."""
        return self.in_a_row >= self.most

    @property
    def room(self) -> int:
        """How many messages may be refused until it is on."""
        return max(0, self.most - self.in_a_row)

    def failure(self, cause: Exception) -> BatchFailed:
        """Return what to raise where another message is refused while it is on."""
        text = f"refused in a row: {self.most:,}; nothing more is set aside: {worded(cause)}"
        return BatchFailed(text, "misconfigured")
