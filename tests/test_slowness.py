"""Of several measurements as many are made as say something."""

from __future__ import annotations

import pytest

from tests.slowness import shortest


@pytest.mark.parametrize(
    ("measured", "found", "rest"),
    [([1.0, 9.0], 1.0, 1), ([3.0, 1.0, 9.0], 1.0, 1), ([5.0, 3.0, 4.0, 9.0], 3.0, 1)],
    ids=["the first is enough", "the second is enough", "none is"],
)
def test_the_first_below_the_bound_is_enough(
    measured: list[float], found: float, rest: int
) -> None:
    left = iter(measured)

    assert shortest(lambda: next(left), 2.0, times=3) == found
    assert len([*left]) == rest
