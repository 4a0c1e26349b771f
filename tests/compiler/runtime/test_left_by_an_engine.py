"""What an engine has left on the disk is taken up by every later one, whatever is in an entry."""

from __future__ import annotations

import asyncio
import json
import lzma
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest
from headrace.compiler.runtime.monitoring.replayfigures import ReplayFigures
from tests.compiler.runtime.counting import rows
from tests.compiler.runtime.keeping import parts
from tests.compiler.runtime.leaving import (
    COUNTED,
    POSTED,
    QUEUED,
    REMEMBERED,
    SENT,
    STORED,
    Left,
    engine_of,
    recorded,
)
from tests.compiler.runtime.lettered import put_down
from tests.rooms import REPOSITORY
from tests.virtual import virtual

RECORDED = sorted((Path(__file__).parent / "recorded").iterdir())
"""What was left by an engine when what is in an entry changed; the last is of today."""
PAGE = (REPOSITORY / "docs" / "store-format.md").read_text()
LATER = datetime(2026, 1, 1, 1, tzinfo=UTC)

CAME = {
    "pipeline": "posts",
    "input": "http",
    "received_at": "2026-01-01T00:00:00.000000+00:00",
    "method": "POST",
    "remote_addr": "10.0.0.7:1",
    "headers": {"x-request-id": "r1"},
}
"""What an envelope tells of what was posted."""
FIRST_OF_2026 = "p/2026-01-01T00-00-00Z-000001.ndjson"
PART = {
    "key": FIRST_OF_2026,
    "media_type": "application/x-ndjson",
    "messages": 2,
    "packing": "none",
    "size": 16,
}


def content(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes())


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name)
@virtual(started_at=LATER)
async def test_whatever_it_has_left_is_taken_up(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "store" / "0"
    folder.mkdir(parents=True)
    (folder / "store.db").write_bytes(content(file))
    clock = Clock(asyncio.get_running_loop())
    left = Left(clock, is_open=True)
    async with engine_of(tmp_path, left, clock) as it:
        counted = {id: rows(it.history, id)[0][1:] for id in COUNTED}
        await clock.sleep(10)

        assert counted == COUNTED
        assert [each["_meta"] for each in left.posts.messages] == [CAME] * 3
        assert encode([each["value"] for each in left.posts.messages]) == (
            b'[{"amount":12.5,"code":12345678901234567890123},{"n":1},{"n":"\xc3\xbc"}]'
        )
        assert [encode(each) for each in left.queue.batches] == [QUEUED.replace(b" ", b"")]
        assert left.batches.batches == [STORED]
        assert left.shop.objects == {FIRST_OF_2026: b'{"n":1}\n{"n":2}\n'}
        bucket = it.state.get("machines")
        assert bucket is not None
        assert {key: dict(each.values) for key, each in bucket.entries.items()} == REMEMBERED
        assert [(each.place, each.content) for each in await put_down(it, "letters")] == [
            ("input[0]", SENT[0]),
            ("transform[0]", [{"n": "one", "amount": 12.5}]),
            ("output[0]", [{"n": 2}]),
        ]
        payload = (await it.letter("letters", 1)).payload
        assert payload is not None
        assert json.loads(payload.metadata) == {"topic": "t0", "received_at": CAME["received_at"]}

        await it.replay(ReplayRequest(pipeline="letters", source="letters"))
        await clock.sleep(10)

        assert await it.replay_figures("letters") == ReplayFigures(1, 3, 1, 2, "done")
        assert left.refusing.written == [{"n": 2}]
        assert await parts(it) == [("", "machines", 2, False)]


class Layouts(NamedTuple):
    """What is in a store, without numbers, times and checksums of rows, which are of its format."""

    entries: list[Any]
    letters: list[Any]
    remembered: list[Any]
    history: list[Any]


def layouts(file: Path) -> Layouts:
    """Take a store apart as the page says it is made."""
    printed: list[Any] = []
    said: dict[str, Any] = {"print": lambda *each: printed.append(each)}
    entries_of, letters_of = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for script in (letters_of, entries_of):
        exec(script.replace("copy/store.db", str(file)), said)
    with closing(sqlite3.connect(file)) as database:
        queues = dict(database.execute("SELECT id, kind FROM queues").fetchall())
        [[count]] = database.execute("SELECT count(*) FROM letters").fetchall()
        remembered = database.execute("SELECT key, value FROM remembered").fetchall()
        history = database.execute(
            "SELECT pipeline, width, start, counts FROM history"
            " WHERE pipeline <> 'lake'"  # which tries again at times drawn by lot
        ).fetchall()
    reads = {"journal": said["arrival"], "queue": said["batch"], "parts": part}
    entries = [(*each[:3], reads[queues[each[0]]](each[3])) for each in printed[count:]]
    return Layouts(entries, printed[:count], remembered, history)


def part(entry: bytes) -> tuple[dict[str, Any], bytes]:
    line, _, body = entry.partition(b"\n")
    told = json.loads(line)
    assert re.fullmatch("[0-9a-f]{32}", told.pop("token"))
    return told, body


def test_what_is_left_today_is_as_it_is_recorded_and_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "recorded.db").write_bytes(content(RECORDED[-1]))
    (tmp_path / "today.db").write_bytes(recorded())

    was, is_now = (layouts(tmp_path / name) for name in ("recorded.db", "today.db"))

    assert is_now == was
    came = datetime(2026, 1, 1, tzinfo=UTC)
    shown = {key: CAME[key] for key in ("method", "remote_addr", "headers")}
    assert [content for *_, content in was.entries] == [
        *((came, shown, False, body) for body in POSTED),
        [{"amount": Decimal("12.50")}, {"n": "ü"}],
        (came, {}, True, b'[{"n":1},{"n":2}]'),
        (PART, b'{"n":1}\n{"n":2}\n'),
    ]
    assert [letter for [letter] in was.letters] == [
        (came, {"topic": "t0"}, False, SENT[0]),
        [{"n": "one", "amount": Decimal("12.5")}],
        [{"n": 2}],
    ]
