"""`headrace` that acknowledges what arrives before it is stored, as it must not; and the disk is slow.

    python acknowledgesearly.py serve [OPTION]...

The tests of what survives a kill have to find that.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.edges import Arrival
from headrace.compiler.runtime.intake import StoringIntake
from headrace.web.commands.cli import main

TAKES_SECONDS = 0.2

stored = StoringIntake._stored


async def acknowledged(self: StoringIntake, arrivals: Sequence[Arrival]) -> None:
    """Acknowledge them, and then store them."""
    self._source.acknowledge([origin for _, origin in arrivals])
    await self._clock.sleep(TAKES_SECONDS)
    await stored(self, arrivals)


if __name__ == "__main__":
    StoringIntake._stored = acknowledged  # type: ignore[method-assign]
    main()
