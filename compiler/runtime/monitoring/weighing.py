"""How much memory messages take, roughly, for who keeps some: looked at within a bound."""

from __future__ import annotations

from sys import getsizeof

from headrace.compiler.delivery import JsonValue


class Scale:
    """Weighs messages until it has looked at so many values, all together."""

    def __init__(self, most_values: int) -> None:
        self._left = most_values

    def bytes_of(self, message: JsonValue) -> int | None:
        """Return the bytes that a message takes; None: it has more values than there is time for."""
        size, waiting = 0, [message]
        self._left -= 1
        for value in waiting:
            size += getsizeof(value)
            if not isinstance(value, dict | list):
                continue
            self._left -= len(value)  # asked before: what is inside may be millions
            if self._left < 0:
                return None
            waiting.extend(value.values() if isinstance(value, dict) else value)
        return size if self._left >= 0 else None
