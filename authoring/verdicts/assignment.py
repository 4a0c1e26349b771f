"""Rows and columns of a table are paired so that the sum of the cells is the smallest there is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence


def cheapest(costs: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    """Yield the row and the column of each pair, in the order of rows; as many as the shorter side has.

    Source: H. W. Kuhn, "The Hungarian Method for the Assignment Problem" (1955), in the form with
    potentials and shortest paths, which takes the cube of the side.
    """
    if len(costs) > len(costs[0]):
        turned = [list(column) for column in zip(*costs, strict=True)]
        yield from sorted((row, column) for column, row in cheapest(turned))
        return
    columns = len(costs[0])
    by_row, by_column = [0.0] * len(costs), [0.0] * columns
    owners: list[int | None] = [None] * columns
    """The row that each column is paired with."""
    for row in range(len(costs)):
        _place(row, costs, by_row, by_column, owners)
    yield from sorted((owner, column) for column, owner in enumerate(owners) if owner is not None)


def _place(
    row: int,
    costs: Sequence[Sequence[float]],
    by_row: list[float],
    by_column: list[float],
    owners: list[int | None],
) -> None:
    """Pair one more row, and move those before it to other columns where that is cheaper.

    ``by_row`` and ``by_column`` are the potentials: their sum is nowhere more than the cell, and just that
    in each pair.
    """
    slack, before = [math.inf] * len(by_column), [-1] * len(by_column)
    seen = set[int]()
    here, column = row, -1
    while True:
        for each in range(len(by_column)):
            rest = costs[here][each] - by_row[here] - by_column[each]
            if each not in seen and rest < slack[each]:
                slack[each], before[each] = rest, column
        column = min(
            (each for each in range(len(slack)) if each not in seen), key=slack.__getitem__
        )
        step = slack[column]
        by_row[row] += step
        for each in range(len(slack)):
            if each in seen:
                owner = owners[each]
                assert owner is not None
                by_row[owner] += step
                by_column[each] -= step
            else:
                slack[each] -= step
        owned = owners[column]
        if owned is None:
            break
        seen.add(column)
        here = owned
    while column != -1:
        last = before[column]
        owners[column] = row if last == -1 else owners[last]
        column = last
