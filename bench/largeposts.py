"""Scenarios of large posts into an empty pipeline: what is decoded in slices, and what might take long.

The bare app decodes each body in one go, for as long as that takes, and numbers near the ends of the range
as slowly as the decoder does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import ingest, servers
from bench.measuring import Compared, Effort, compared
from bench.table import Row, ratio_row

PER_SECOND = 300_000
"""Messages of a sample, for each second that it is to take: about as many as are taken in one."""


def ingest3000(effort: Effort) -> list[Row]:
    """Three thousand messages a post: a body of 375 KB, which is decoded in slices."""
    return _posted("ingest3000", 3000, "readings", effort)


def ingestids(effort: Effort) -> list[Row]:
    """Three hundred messages a post, 75 KB, each with an identifier that looks like slow numbers."""
    return _posted("ingestids", 300, "rows", effort)


def _posted(name: str, size: int, kind: str, effort: Effort) -> list[Row]:
    compared = _beside(size, kind, effort)
    limit = "a bare protocol that appends"
    return [ratio_row(name, compared, limit, unit="msg/CPU s")]


def _beside(size: int, kind: str, effort: Effort) -> Compared:
    config = [ingest.pipeline("p1", [], [])]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace(config, Path(folder)) as ours,
        servers.bare("append") as limit,
    ):
        posts = max(int(effort.seconds * PER_SECOND / size), 2)
        return compared(
            [
                (ingest.cost(ours, size, posts, kind), ingest.cost(limit, size, posts, kind))
                for _ in range(effort.pairs + 1)
            ][1:]
        )
