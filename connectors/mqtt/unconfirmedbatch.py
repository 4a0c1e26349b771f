"""A batch that is on its way to an MQTT broker: what is not published yet, and what is not confirmed."""

from __future__ import annotations

from collections.abc import Sequence


class UnconfirmedBatch:
    """The messages of one batch by their index, and what has become of each."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.payloads = payloads
        self.left: list[int] = []
        """Those that were published and are not confirmed, in order."""
        self.refused: dict[int, str] = {}
        """Those that are at fault, each with what is said of it."""
        self.cut_off = 0
        """How many of those that are left, the first, had been sent when the connection broke."""
        self._at = 0

    @property
    def is_left(self) -> bool:
        """Whether anything is still to be published, or to be confirmed."""
        return bool(self.left) or self._at < len(self.payloads)

    def taken(self, most: int) -> list[bytes]:
        """Return what is to be published now: what is not confirmed, and more, so many at most."""
        before, self._at = self._at, min(self._at + most - len(self.left), len(self.payloads))
        self.left += range(before, self._at)
        return [self.payloads[index] for index in self.left]

    def next_index(self) -> int | None:
        """Return the next that was not published yet, which is left from now on; None: there is none."""
        if self._at == len(self.payloads):
            return None
        self.left.append(self._at)
        self._at += 1
        return self.left[-1]

    def note(self, unconfirmed: Sequence[int], sent: int) -> None:
        """Note which of those that are left, by place, are not confirmed; the first ``sent`` were sent."""
        self.left = [self.left[place] for place in unconfirmed]
        self.cut_off = sent

    def refuse(self, index: int, said: str) -> None:
        """Note that a message is at fault."""
        self.left.remove(index)
        self.refused[index] = said

    def done(self) -> list[int]:
        """Return those that are confirmed."""
        others = {*self.left, *self.refused}
        return [index for index in range(self._at) if index not in others]
