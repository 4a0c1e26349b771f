"""Where things are on the page, in its pixels."""

from __future__ import annotations

from itertools import combinations

from playwright.sync_api import Locator

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def box_of(element: Locator) -> Box:
    """Return where an element is that is shown, when it has come to rest."""
    element.element_handle().wait_for_element_state("stable")
    box = element.bounding_box()
    assert box is not None
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def boxes_of(elements: Locator) -> dict[str, Box]:
    """Return where all of several elements are, all of one moment."""
    found = elements.evaluate_all(
        "all => all.map(each => each.getBoundingClientRect())"
        ".map(({ left, top, right, bottom }) => [left, top, right, bottom])"
    )
    return {str(at): tuple(box) for at, box in enumerate(found)}


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes have a part in common."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def overlapping(boxes: dict[str, Box]) -> list[tuple[str, str]]:
    """Return the pairs that have a part in common."""
    return [
        (one, other) for one, other in combinations(boxes, 2) if overlap(boxes[one], boxes[other])
    ]
