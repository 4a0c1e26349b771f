"""What the test of each kind of transform says of its branches: which there are, and what takes them.

`tests/authoring/testing/test_covered_kinds.py` plays them. Each file has them as ``COVERED``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Covered:
    """A transform of a pipeline ``a`` with the bucket ``last``, whose key is ``id``.

    ``given`` takes all its branches; ``untaken`` is what is said of each that is not taken, in order.
    """

    transform: str
    given: str
    untaken: tuple[str, ...]


def of_condition(field: str) -> tuple[str, str]:
    """Return what is said of a condition."""
    said = f"the condition on '{field}' was never"
    return f"{said} true", f"{said} false"
