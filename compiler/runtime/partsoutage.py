"""The outages of an output that hands over parts: some may wait for somebody while others are taken."""

from __future__ import annotations

from headrace.compiler.component.partsbridge import PartsBridge
from headrace.compiler.errors import FailureClass, worded
from headrace.compiler.runtime.outage import OutageBridge, OutagePlace


class PartsOutage(OutageBridge, PartsBridge):
    """Also waits, as `misconfigured`, for as long as somebody has to act for one part."""

    def __init__(self, place: OutagePlace, seconds: float | None) -> None:
        """Take for how long an outage is bridged, None: for ever."""
        super().__init__(place, seconds, "written to again")
        self._aside: dict[object, str] = {}
        """The parts that wait for somebody, each with why."""

    def set_aside(self, part: object, cause: Exception) -> float:
        self._aside[part] = worded(cause)
        if self.waits_for is None:
            self._tell(None, "")
        return self._acting_seconds()

    def ended(self, part: object) -> None:
        if self._aside.pop(part, None) is not None and not self._aside and not self.is_on:
            self._has_called = False
            self._tell(None, "")

    def close(self) -> None:
        """Wait no longer: the pipeline is over."""
        self._aside.clear()
        super().close()

    def _tell(self, failure: FailureClass | None, why: str) -> None:
        if failure is None and self._aside:
            failure, why = "misconfigured", next(iter(self._aside.values()))
        super()._tell(failure, why)
