"""What an output does to find out which messages of a batch are at fault that the other side refuses.

A component states it where it is defined. Of each failure its sink says whether nothing was taken
(`BatchFailed.took_nothing`): only then parts of a batch are tried, and nothing can be there twice.
"""

from __future__ import annotations

from typing import Literal

HowToldApart = Literal["halves", "index", "never"]


class Bisection:
    """How it is found out.

    ``how``: ``halves`` of batches that are refused as a whole are tried, at least of some; ``index``: a
    failure says which messages are at fault, so nothing has to be; ``never``. ``says`` is the same for a
    table, as Markdown.
    """

    __slots__ = ("how", "says")

    def __init__(self, how: HowToldApart, says: str) -> None:
        self.how, self.says = how, says


NEVER_BISECTED = Bisection("never", "never")
TOLD_BY_INDEX = Bisection("index", "not needed: a failure says which messages are at fault")
