"""A batch cut into what is published at once, before the server's answer is awaited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

PORTION_MESSAGES = 1000
PORTION_BYTES = 1024 * 1024
"""Most that is published at once, unless one message alone is larger."""


def portions(bodies: Sequence[bytes], most_bytes: int = PORTION_BYTES) -> Iterator[Sequence[bytes]]:
    """Yield the bodies in order, as many at a time as are published at once."""
    start = size = 0
    for end, body in enumerate(bodies):
        if end - start == PORTION_MESSAGES or (size and size + len(body) > most_bytes):
            yield bodies[start:end]
            start, size = end, 0
        size += len(body)
    yield bodies[start:]
