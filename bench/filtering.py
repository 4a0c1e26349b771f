"""Scenarios of posts that a filter lets through to a file: few of the messages, or most of them.

What a post costs ahead of the chain is the same for both, so what they tell is decoding, and encoding.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import ingest, servers
from bench.ingest import cost
from bench.measuring import Compared, Effort, compared
from bench.table import Row, ratio_row

SIZE = 100
FEW = 95.0
"""What 5 % of the temperatures are above."""
MOST = 20.0
"""What 80 % are above."""


def alarms(effort: Effort) -> list[Row]:
    """A filter that passes 5 % of the messages, a hundred a post, into a file of lines."""
    return _above("alarms", FEW, effort)


def passthrough(effort: Effort) -> list[Row]:
    """The same with a filter that passes 80 %: nothing is changed, and most is encoded again."""
    return _above("passthrough", MOST, effort)


def _above(name: str, least: float, effort: Effort) -> list[Row]:
    compared = _beside(least, effort)
    limit = "a bare protocol that decodes, filters and writes"
    return [ratio_row(name, compared, limit, unit="msg/CPU s")]


def _beside(least: float, effort: Effort) -> Compared:
    """Return what a message costs the server beside a bare protocol, both with a client that posts."""
    condition = {"field": "temp", "operator": "greater_than", "value": least}
    transforms = [{"type": "filter", "Numeric": condition}]
    outputs = [{"type": "file", "connection": "disk", "path": "lines"}]
    config = [ingest.pipeline("p1", transforms, outputs)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connections = {"disk": {"type": "file", "root": str(folder / "ours")}}
        directory = ["--data-dir", str(folder)]
        with (
            servers.headrace(config, folder, connections, directory) as ours,
            servers.limit("bench.bareprotocol", "filter", least, folder / "bare.ndjson") as limit,
        ):
            our_posts, limit_posts = (ingest.fitting(each, SIZE, effort) for each in (ours, limit))
            return compared(
                [
                    (cost(ours, SIZE, our_posts), cost(limit, SIZE, limit_posts))
                    for _ in range(effort.pairs)
                ]
            )
