"""A broker of its own for the tests of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.edges import Source
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.sampling import MOST_BYTES
from tests.stand_ins import (
    reads,
)

DOWN = Unreachable("broker:1 does not answer: connection refused")


class Broker(Source):
    """A source that connects. Each life is a script as `Told` has it, and stays to the end of time.

    An error as a script is a life that does not begin. ``closes_in`` seconds it takes to close.
    """

    connects = True

    def __init__(self, clock: Any, *lives: Any, closes_in: float = 0.0) -> None:
        self._clock, self._lives, self._closes_in = clock, list(lives), closes_in
        self.acknowledged: list[Any] = []
        self.began = self.ended = 0
        self.is_closed = False

    async def read(self) -> Any:
        life = self._lives.pop(0) if len(self._lives) > 1 else self._lives[0]
        self.began += 1
        try:
            if isinstance(life, BaseException):
                raise life
            if isinstance(life, float):
                await self._clock.sleep(life)
                life = []
            yield ()
            for line in life:
                if isinstance(line, BaseException):
                    raise line
                if isinstance(line, int | float):
                    await self._clock.sleep(line)
                else:
                    yield [(payload, None) for payload in line]
            await self._clock.sleep(1e9)
        finally:
            await self._clock.sleep(self._closes_in)
            self.ended += 1

    def acknowledge(self, origins: Sequence[Any]) -> None:
        self.acknowledged += origins

    def close(self) -> Sequence[int]:
        self.is_closed = True
        return ()


async def taken(
    it: Engine,
    source: Source,
    *,
    most: int = 5,
    seconds: float = 5.0,
    most_bytes: int = MOST_BYTES,
    **options: Any,
) -> Any:
    """Return what becomes of a sample of a source."""
    given = reads(source, **options)
    return await it.samples.take(given, most=most, seconds=seconds, most_bytes=most_bytes)
