"""How long something took, without the time in which the machine was busy with something else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic

PRESSURE = Path("/proc/pressure/cpu")


def stalled() -> float:
    """Return the seconds since boot in which a task waited for a processor; 0 where nobody counts them."""
    with suppress(OSError, StopIteration):
        some = next(line for line in PRESSURE.read_text().splitlines() if line.startswith("some "))
        return int(some.rpartition("total=")[2]) / 1e6
    return 0.0


class Stopwatch:
    """Started when it is made.

    A bound for `seconds` holds on a busy machine as well: what waits for a processor is not counted,
    and what waits for a server that hangs is.
    """

    def __init__(self) -> None:
        self._began, self._stalled = monotonic(), stalled()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return monotonic() - self._began

    @property
    def seconds(self) -> float:
        """Those elapsed, less those in which any task of the machine waited for a processor.

        They are a quarter of all at least, so what hangs on a busy machine is found as well.
        """
        return max(self.elapsed / 4, self.elapsed - (stalled() - self._stalled))

    @property
    def busy(self) -> float:
        """Seconds of those elapsed that are not counted."""
        return self.elapsed - self.seconds
