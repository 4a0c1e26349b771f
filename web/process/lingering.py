"""A connection that lingers when it is closed, so that the client reads what it was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.compiler.clock import Clock

LINGER_SECONDS = 30
"""How long a client that still sends is waited for at most, once it is answered (`Lingering`)."""
SILENT_SECONDS = 5
"""After which one of those who sends nothing more is waited for no longer."""
MOST_DROPPED = 64 * 1024 * 1024
"""Bytes that such a client may send: several times those of the largest body that is taken."""


class Lingering(asyncio.Transport):
    """A transport that lingers when it is closed while, as ``has_more`` says, there is more to come.

    Where a server closes and there is something that it has not read, the system tells the client that the
    connection is broken, and the client throws away what it was answered: who sends a whole body before
    reading would never see the 413. So only our side is closed at first, and what still comes is dropped,
    until the client has read the answer and closes as well; for so long and so much, and no longer.

    Source: RFC 9112, 9.6; nginx does it as `lingering_close`, Go's `net/http` for a moment.
    """

    def __init__(
        self, inner: asyncio.Transport, clock: Clock, has_more: Callable[[], bool]
    ) -> None:
        super().__init__()
        self.inner = inner
        self.is_lingering = False
        self._clock, self._has_more = clock, has_more
        self._dropped = 0
        self._look: asyncio.TimerHandle | None = None
        self.write = inner.write  # type: ignore[method-assign]  # a call less for each answer

    def close(self) -> None:
        """Close, at once if there is nothing to come. One that lingers is closed at once as well."""
        if self.is_lingering or self.inner.is_closing() or not self._has_more():
            self.forget()
            self.inner.close()
            return
        self.is_lingering = True
        self.write = self._write_nothing  # type: ignore[method-assign]
        self.inner.resume_reading()  # what was stopped because nobody took it
        self.inner.write_eof()
        self._look_later(0, SILENT_SECONDS)

    def drop(self, size: int) -> None:
        """Count what has come since, and is looked at by nobody."""
        self._dropped += size
        if self._dropped > MOST_DROPPED:
            self.close()

    def forget(self) -> None:
        """Look no more: the connection is over."""
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def abort(self) -> None:
        """Close at once, whatever is to be sent."""
        self.forget()
        self.inner.abort()

    def _write_nothing(self, data: Any) -> None:
        """Send nothing: our side is closed."""

    def is_closing(self) -> bool:
        """Whether nothing more is sent."""
        return self.is_lingering or self.inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection."""
        return self.inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Return how much the client has not taken."""
        return self.inner.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Stop reading for a while; what is only dropped is not stopped."""
        if not self.is_lingering:
            self.inner.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self.inner.resume_reading()

    def _look_later(self, seen: int, seconds: int) -> None:
        """Close when nothing has come until then since so much was ``seen``, or when the time is up."""

        def look() -> None:
            if self._dropped == seen or seconds >= LINGER_SECONDS:
                self.close()
            else:
                self._look_later(self._dropped, seconds + SILENT_SECONDS)

        self._look = self._clock.call_later(SILENT_SECONDS, look)
