"""Ten thousand messages that mean harm: each is stored as it was written, or refused by its column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.whole.aside import Aside
from tests.whole.figures import Figure
from tests.whole.linking import linked
from tests.whole.stores.kinds.every import CLICKHOUSE, POSTGRES
from tests.whole.stores.kinds.kind import Json, Table
from tests.whole.stores.reference import differences, fate
from tests.whole.stores.told import failed, reasons, wait_until_through
from tests.whole.stores.values import GOOD, messages

pytestmark = pytest.mark.long

COUNT = 10_000
TOGETHER = 100
"""How many messages are posted at once."""

COLUMNS: list[Json] = [
    {"name": "n", "type": "bigint", "nullable": False},
    *({"name": f"a_{kind}", "type": kind} for kind in GOOD),
    {"name": "needed", "type": "integer", "on_missing": "error"},
    {"name": "wanted", "type": "text", "on_missing": "skip_row"},
    {"name": "whole", "type": "json", "message": True},
]
DRAWN = [column for column in COLUMNS if column["name"] not in ("n", "whole")]
NAMES = [column["name"] for column in DRAWN]
STORED = "stored"
"""The pipeline of what is to be stored. What a column is to refuse has one by the column's name."""


def pipelines(kind: Table) -> list[Json]:
    """Return pipelines that write into one table. Where batches are refused they are of one message."""
    output = kind.output("store", "readings", columns=COLUMNS)
    storing = {"id": STORED, "inputs": [{"type": "http"}], "outputs": [output]}
    alone = [{"type": "splitter", "out_size": 1}]
    return [storing, *({**storing, "id": name, "transforms": alone} for name in NAMES)]


def sorted_out(kind: Table) -> tuple[Mapping[str, Sequence[str]], Mapping[int, Json]]:
    """Return the messages by the pipelines that they are posted to, and the rows that are wanted."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    rows = {}
    for text in messages(DRAWN, COUNT):
        found = fate(kind.database, COLUMNS, text)
        texts[found.refused_by or STORED].append(text)
        if found.row is not None:
            rows[found.row["n"]] = found.row
    return texts, rows


def post(server: Server, pipeline: str, texts: Sequence[str]) -> None:
    """Post all of these, and wait until the pipeline has written or refused each."""
    client, rest = server.client(), iter(texts)
    while portion := [*islice(rest, TOGETHER)]:
        body = f"[{','.join(portion)}]".encode()
        assert client.request("POST", f"/api/pipelines/{pipeline}/messages", body).status == 202
    wait_until_through(server, pipeline, len(texts))


@promise("delivery.failed.row")
@pytest.mark.parametrize("kind", [POSTGRES, CLICKHOUSE], ids=str)
def test_a_message_is_stored_as_written_or_refused_by_its_column(
    tmp_path: Path, kind: Table, figure: Figure
) -> None:
    texts, wanted = sorted_out(kind)
    with kind.server(tmp_path / "store") as store, Aside() as aside:
        options = linked(tmp_path / "headrace", {"store": kind.connection(store)})
        with serving(tmp_path / "headrace", pipelines(kind), *options) as server:
            began = monotonic()
            for pipeline in (STORED, *NAMES):
                post(server, pipeline, texts.get(pipeline, []))
            took = monotonic() - began
            failures = {pipeline: failed(server, pipeline) for pipeline in (STORED, *NAMES)}
            told = {pipeline: reasons(server, pipeline) for pipeline in (STORED, *NAMES)}
        found = {row["n"]: row for row in aside.do(kind.rows(store, "readings", COLUMNS))}

    refused = {name: len(texts.get(name, [])) for name in NAMES}
    skipped = len(texts[STORED]) - len(wanted)
    figure("rows", f"{len(found)} of {COUNT} in {took:.1f} s, {skipped} skipped")
    figure("refused", {name: f"{refused[name]} for {len(told[name])} reasons" for name in NAMES})
    assert [*wrong(kind, wanted, found)] == []
    assert failures == {STORED: 0, **refused}
    for name in NAMES:
        assert [text for text in told[name] if not text.startswith(f"column '{name}': ")] == []


def wrong(kind: Table, wanted: Mapping[int, Json], found: Mapping[int, Any]) -> Iterator[str]:
    """Yield in words what is in the table and should not be, and what should be and is not."""
    for number in sorted(wanted.keys() ^ found.keys()):
        yield f"{number} is {'not stored' if number in wanted else 'stored'}"
    for number in sorted(wanted.keys() & found.keys()):
        for each in differences(kind.database, COLUMNS, wanted[number], found[number]):
            yield f"{number}: {each}"
