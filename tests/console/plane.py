"""Where things are on the page, in its pixels."""

from __future__ import annotations

from itertools import combinations

from playwright.sync_api import Locator

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def box_of(element: Locator) -> Box:
    """Return where an element is that is shown."""
    box = element.bounding_box()
    assert box is not None
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes have a part in common."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def overlapping(boxes: dict[str, Box]) -> list[tuple[str, str]]:
    """Return the pairs that have a part in common."""
    return [
        (one, other) for one, other in combinations(boxes, 2) if overlap(boxes[one], boxes[other])
    ]
