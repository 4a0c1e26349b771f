"""Batches that were cut off on their way: they are sent again as they were, for who may know them."""

from __future__ import annotations

from operator import is_

from headrace.compiler.delivery import Batch


class CutOffBatches:
    """The batches of one output that were cut off last.

    Nobody knows whether they are written; a sink may know the same batch again, or have the other side know
    it. So when it is tried again, as part of a larger one, it is to be written by itself and first.
    """

    def __init__(self, most: int) -> None:
        """Take how many can be on their way at once."""
        self._most = most
        self.by_first: dict[int, Batch] = {}
        """By the identity of their first message, which is there as long as they are."""

    def add(self, batch: Batch) -> None:
        """Note a batch that was cut off."""
        self.by_first[id(batch[0])] = batch
        if len(self.by_first) > self._most:
            del self.by_first[next(iter(self.by_first))]

    def first_in(self, batch: Batch) -> Batch | None:
        """Return the one that a batch begins with, the same messages in the same order."""
        found = self.by_first.get(id(batch[0]))
        if found is None or len(found) > len(batch) or not all(map(is_, found, batch)):
            return None
        return found

    def taken_out(self, batch: Batch) -> Batch | None:
        """Return the one that has the messages of a batch, and forget it."""
        found = self.first_in(batch)
        if found is None or len(found) < len(batch):
            return None
        return self.by_first.pop(id(batch[0]))
