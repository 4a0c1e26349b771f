"""The tables of the page about speed: some rows of what was measured, in words of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.web.docs.markdown import RegionTexts, table

MEASURED = Path("bench/results.md")
"""What `make bench` writes, in the checkout."""

POSTS = {
    "ingest1": "posts of one message",
    "ingest10": "posts of ten",
    "ingest100": "posts of a hundred, through `filter`, `map` and `reducer` to `stdout`",
    "alarms": "posts of a hundred, of which a `filter` lets 5 through to a `file`",
    "passthrough": "posts of a hundred, of which a `filter` lets 80 through to a `file`",
    "ingestscript": "posts of a hundred, through a `script`",
    "postgres1": "posts of one message into `postgres`, five hundred an insert",
    "postgres100": "posts of a hundred into `postgres`, each an insert",
    "clickhouse1000": "posts of a thousand into `clickhouse`, each an insert",
}
BROKERS = {
    "kafka1": "`kafka` to `kafka`, every message a batch",
    "kafka100": "`kafka` to `kafka`, a hundred messages a batch",
    "nats100": "`nats` to `nats`, a hundred a batch",
    "redis100": "`redis` to `redis`, a hundred a batch",
    "mqtt0": "`mqtt` to `mqtt`, at most once",
    "mqtt1": "`mqtt` to `mqtt`, at least once, acknowledged when it is delivered",
    "opcua1000": "`opcua`, a thousand variables of a device",
}
TRANSFORMS = {
    "filter1": "one `filter`",
    "filter5": "five",
    "map1": "one `map` with one mapping that calculates",
    "remember100": "`remember` two fields under a hundred keys",
    "recall100": "`recall` two fields of a hundred keys",
    "script100": "a `script` of one line, a hundred messages a batch",
    "script1": "the same, one message a batch",
}
STORED = {
    "durable1": "posts of one message into an input with `durable`",
    "durable100": "posts of a hundred",
    "queue1": "batches of one message through an output with a `queue` that keeps up",
    "queue100": "batches of a hundred",
}
UNITS = {"msg": "messages", "row": "rows", "value": "values", "passes": "batches"}
Figures = dict[str, list[list[str]]]
"""The rows of what was measured, by scenario: what ours does, what it is held against, the ratio."""


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page, of what is measured in the same checkout."""
    figures = _read((docs.absolute().parent / MEASURED).read_text())
    head = ("what", "a second", "beside code by hand for the one purpose")
    return {
        "speed.md": {
            "posts": table(head, _told(POSTS, figures)),
            "brokers": table(head, _told(BROKERS, figures)),
            "transforms": table(head, _told(TRANSFORMS, figures)),
            "stored": table(
                ("what", "a second", "beside the same without"), _told(STORED, figures)
            ),
            "short": table(
                ("scenario", "measured", "held against", "ratio", "bar"), _short(figures)
            ),
        }
    }


def _read(page: str) -> Figures:
    figures: Figures = {}
    for line in page.splitlines():
        scenario, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
        if len(cells) >= 4:
            figures.setdefault(scenario, []).append(cells)
    return figures


def _told(rows: dict[str, str], figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield what was measured of each; of its CPU time where that was taken as well as the clock's."""
    for scenario, words in rows.items():
        found = figures.get(scenario, ())  # a driver that is not there is not measured
        for measured, _, ratio, *_ in sorted(found, key=lambda row: "CPU s" not in row[0])[:1]:
            number, _, unit = measured.partition("/")[0].rpartition(" ")
            yield words, f"{number} {UNITS[unit]}", ratio.partition(" ")[0]


def _short(figures: Figures) -> list[tuple[str, ...]]:
    """Return the rows that fall short of their bar."""
    return [
        (scenario, *row[:4])
        for scenario, rows in figures.items()
        for row in rows
        if row[-1].startswith("**short**")
    ]
