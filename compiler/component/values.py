"""Values that a component lets through, to find out when two of them leave nothing over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Numbers above, below or at a number; or strings that are, or contain, a string."""

    above: float | None = None
    below: float | None = None
    equal: float | str | None = None
    containing: str | None = None

    def excludes(self, others: ValueRange) -> bool:
        """Return whether it is certain that no value is among these and among the others."""
        if self._are_strings != others._are_strings:
            return True
        return self._lie_apart(others) or others._lie_apart(self)

    @property
    def _are_strings(self) -> bool:
        return self.containing is not None or isinstance(self.equal, str)

    def _lie_apart(self, others: ValueRange) -> bool:
        """Compare in one direction. Numbers exactly: as doubles they can only be nearer."""
        if isinstance(self.equal, str):
            if isinstance(others.equal, str):
                return self.equal != others.equal
            return others.containing is not None and others.containing not in self.equal
        if self.equal is not None:
            if isinstance(others.equal, int | float):
                return _differ(self.equal, others.equal)
            return (others.above is not None and self.equal <= others.above) or (
                others.below is not None and self.equal >= others.below
            )
        return self.above is not None and others.below is not None and self.above >= others.below


def _differ(one: float, other: float) -> bool:
    """Return whether two numbers differ also as doubles, which is how they may be compared."""
    try:
        return float(one) != float(other)
    except OverflowError:
        return False
