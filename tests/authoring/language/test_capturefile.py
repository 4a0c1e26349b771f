"""Captures on file: what they tell, and what is wrong with one, with its line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.language import capturefile
from headrace.authoring.language.capturefile import (
    CaptureFile,
    NotACapture,
    content_of,
    read_capture,
)
from headrace.compiler.jsontext import encode

HEADER = {
    "headrace": "capture",
    "version": 1,
    "started_at": "2026-03-02T06:00:00.000000+00:00",
    "pipelines": [],
    "redacted": [],
}


def written(*lines: Any, header: Any = HEADER) -> bytes:
    told = [each if isinstance(each, bytes) else encode(each) for each in (header, *lines)]
    return b"".join(each + b"\n" for each in told)


def read(folder: Path, text: bytes) -> CaptureFile:
    (folder / "c.ndjson").write_bytes(text)
    return read_capture(folder / "c.ndjson")


def refusal(folder: Path, text: bytes) -> str:
    with pytest.raises(NotACapture) as refused:
        read(folder, text)
    return str(refused.value).removeprefix(f"{folder}/")


def test_it_tells_what_arrived_when(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        written(
            {"at": 2.5, "to": "p.inputs[0]", "batch": [{"n": 1}], "meta": {"topic": "t"}},
            b"",
            {"at": 1, "to": "q.inputs[1]", "raw": "{"},
            {"at": 2, "to": "q.inputs[1]", "base64": "//4="},
            {"at": 3, "gap": 2},
            {"at": 4, "gap": 1},
            {"at": 9, "end": "seconds", "records": 3, "dropped": 3},
        ),
    )

    assert found.started_at == datetime(2026, 3, 2, 6, tzinfo=UTC)
    told = [(each.at, each.to, each.arriving.payload) for each in found.arrivals]
    assert told == [
        (1, "q.inputs[1]", b"{"),
        (2, "q.inputs[1]", b"\xff\xfe"),
        (2.5, "p.inputs[0]", [{"n": 1}]),
    ]
    assert found.arrivals[-1].arriving.meta == {"topic": "t"}
    assert (found.dropped, found.ends, found.is_whole) == (3, 9, True)
    assert found.inputs() == {"q.inputs[1]": 2, "p.inputs[0]": 1}


def test_a_reply_is_found_by_content_whatever_the_order_of_keys(tmp_path: Path) -> None:
    reply = {"of": "p.transforms[0]", "request": [{"a": 1, "b": 2}], "seconds": 0.5}
    found = read(
        tmp_path,
        written(
            {"at": 1, "reply": {**reply, "status": 200, "body": [1]}},
            {"at": 1, "reply": {**reply, "status": 500}},
            {"at": 1, "reply": {**reply, "status": None}},
            {"at": 1, "reply": {**reply, "status": 200, "raw": "<"}},
        ),
    )

    assert {each.request for each in found.replies} == {content_of([{"b": 2, "a": 1}])}
    told = [(each.reply.status, each.reply.body, each.reply.is_down) for each in found.replies]
    assert told == [(200, [1], False), (500, None, False), (200, None, True), (200, None, False)]
    assert found.replies[3].reply.raw == b"<"


def test_every_digit_is_kept(tmp_path: Path) -> None:
    text = b'{"n":123456789012345678901234567890,"x":1.50}'
    line = b'{"at":1,"to":"p.inputs[0]","batch":[' + text + b"]}"

    [found] = read(tmp_path, written(line)).arrivals

    assert encode(found.arriving.payload) == b"[" + text + b"]"


def test_messages_are_as_deep_as_messages_may_be(tmp_path: Path) -> None:
    deep = b"[" * 128 + b"]" * 128
    line = b'{"at":1,"to":"p.inputs[0]","batch":[%b]}'

    assert len(read(tmp_path, written(line % deep)).arrivals) == 1
    assert "nested deeper" in refusal(tmp_path, written(line % (b"[" + deep + b"]")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "c.ndjson:1: this is no capture"),
        (b'{"n": 1}\n', "c.ndjson:1: this is no capture"),
        (written(header={**HEADER, "version": 2}), "1: a capture of version 2: version 1 is read"),
        (written(header={**HEADER, "started_at": "today"}), "1: this is no line of a capture"),
        (written({"at": 1, "gap": 1}, b'{"at":1}'), "3: this is no line of a capture: it tells"),
        (
            written(header={**HEADER, "started_at": "0001-01-01T00:00:00+14:00"}),
            "an end of the cal",
        ),
        (
            written(header={**HEADER, "started_at": "9999-12-31T23:59:59Z"}),
            "an end of the calendar",
        ),
        (written(HEADER), "2: another capture begins here"),
        (written(b'{"at":1,"to":"p","batch":[%b]}' % (b"[" * 90_000 + b"]" * 90_000)), "too deep"),
        (written(b"[]"), "2: this is no line of a capture"),
        (written({"at": -1, "gap": 1}), "2: this is no line of a capture: 'at' is -1.0"),
        (written({"at": 1e300, "gap": 1}), "2: this is no line of a capture: 'at' is 1e+300"),
        (written(b'{"at":1e400,"gap":1}'), "2: this is no line of a capture"),
        (written({"at": 1, "to": "p.inputs[0]"}), "expected 'batch', 'raw' or 'base64'"),
        (written({"at": 1, "to": "p", "base64": "?"}), "2: this is no line of a capture: 'base64'"),
        (written({"at": 1, "to": "p", "batch": [1], "meta": 3}), "2: this is no line of a capture"),
        (written(b'{"at":1,"to":"p","batch":[1e400]}'), "2: this is no line of a capture"),
        (written(b'{"at":1,"to":"p","raw":"\\ud800"}'), "2: this is no line of a capture"),
        (written(b"\xff\xfe"), "2: this is no line of a capture"),
        (written(b"\x00\x1b[31m"), "2: this is no line of a capture"),
        (
            written(
                {
                    "at": 1,
                    "reply": {"of": "p", "request": [], "status": 7, "seconds": 0},
                }
            ),
            "'status' is 7",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: bytes, said: str) -> None:
    told = refusal(tmp_path, text)

    assert said in told
    assert "\n" not in told
    assert told.isprintable()


@pytest.mark.parametrize("left", [1, 10, 40])
def test_one_that_is_cut_off_in_a_line_is_told_with_the_number_of_the_line(
    tmp_path: Path, left: int
) -> None:
    text = written({"at": 1, "to": "p.inputs[0]", "batch": [{"n": 1}]}, {"at": 2, "gap": 1})
    line = text.splitlines(keepends=True)[1]

    told = refusal(tmp_path, text.split(line)[0] + line[:left])

    assert told.startswith("c.ndjson:2: the capture is cut off in the middle of this line")


def test_one_without_its_last_line_is_not_whole(tmp_path: Path) -> None:
    assert not read(tmp_path, written({"at": 1, "gap": 1})).is_whole


def test_its_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capturefile, "MOST_BYTES", 300)
    lines = [{"at": number, "gap": 1} for number in range(30)]

    assert "a capture has at most" in refusal(tmp_path, written(*lines))


def test_json_of_others_reads_the_same(tmp_path: Path) -> None:
    line = {"at": 1, "to": "p.inputs[0]", "batch": ["\u2028é"]}

    [found] = read(tmp_path, written(json.dumps(line).encode())).arrivals

    assert found.arriving.payload == ["\u2028é"]


def test_what_has_no_end_of_a_line_fills_no_memory() -> None:
    with pytest.raises(NotACapture, match="this is no capture"):
        read_capture(Path("/dev/zero"))
