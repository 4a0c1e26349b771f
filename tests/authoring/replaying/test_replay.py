"""A capture played through two configs: what is the same, what differs, and what nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.replaying.replay import ReplayTooLong
from headrace.authoring.replaying.report import replay_lines
from tests.authoring.replaying.comparing import at, capture, replays_differ

FILTER = """\
- id: p
  inputs: [{type: %s}]
  transforms: [{type: filter, Numeric: {field: temp, operator: greater_than, value: %d}}]
"""
MQTT = "mqtt, connection: plant, topic: t"
WINDOW = """\
- id: p
  inputs: [{type: http, envelope: {type: merge}}]
  transforms:
    - {type: buffer, seconds: %d, max_messages: 100}
    - type: script
      source: {type: inline, code: "msg.at = now(); msg.millis = now_millis(); emit(msg)"}
"""
ASKS = """\
- id: p
  inputs: [{type: http}]
  transforms:
    - {type: filter, Numeric: {field: temp, operator: greater_than, value: %d}}
    - {type: http, url: "http://127.0.0.1:9/%s", verb: POST}
"""


def readings(*temps: int, to: str = "p") -> list[dict[str, Any]]:
    return [at(number + 1.0, to, {"temp": temp}) for number, temp in enumerate(temps)]


def reply(request: list[Any], answer: Any, of: str = "p.transforms[1]", **more: Any) -> Any:
    told = {"of": of, "request": request, "status": 200, "seconds": 0.25, "body": answer, **more}
    return {"at": 1.0, "reply": told}


def differences(found: Any) -> list[dict[str, Any]]:
    return [each for line in found.timelines for each in line.difference.as_json()]


@pytest.mark.parametrize("kind", ["http", MQTT])
def test_equal_configs_come_to_the_same(tmp_path: Path, kind: str) -> None:
    config = FILTER % (kind, 10)

    found = replays_differ(tmp_path, config, config, capture(*readings(5, 12, 20), ends=10))

    assert found.is_empty
    assert found.compared == ("p",)


@pytest.mark.parametrize("kind", ["http", MQTT])
def test_another_config_differs_in_exactly_what_it_changes(tmp_path: Path, kind: str) -> None:
    found = replays_differ(
        tmp_path,
        FILTER % (kind, 10),
        FILTER % (kind, 15),
        capture(*readings(5, 12, 20), ends=10),
    )

    assert differences(found) == [{"kind": "missing", "at": "2s", "expected": '{"temp": 12}'}]
    assert (found.said, found.unanswered, found.unplayed) == ((), (), ())
    assert [*replay_lines(found, "c.ndjson")][1:] == [
        "             2s 3s",
        "  expected  -a--b-",
        "  came      ----b-",
        '  - a       2s  never came: {"temp": 12}',
    ]


def test_what_is_no_json_is_skipped_as_in_production(tmp_path: Path) -> None:
    raw = {"at": 1.5, "to": "p.inputs[0]", "raw": "{"}
    found = replays_differ(
        tmp_path,
        FILTER % (MQTT, 10),
        FILTER % (MQTT, 15),
        capture(raw, *readings(5), ends=3),
    )

    assert found.is_empty
    # An input that takes no bytes is not given any.
    assert [
        (each.kind, each.before, each.after)
        for each in replays_differ(
            tmp_path, FILTER % (MQTT, 10), FILTER % ("http", 10), capture(raw, ends=3)
        ).said
    ] == [("warnings", 1, 0)]


def test_payloads_that_came_together_are_coalesced_as_they_were(tmp_path: Path) -> None:
    config = "- {id: p, inputs: [{type: mqtt, connection: plant, topic: t, max_batch: %d}]}\n"

    found = replays_differ(
        tmp_path, config % 10, config % 1, capture(at(1, "p", {"n": 1}, {"n": 2}), ends=3)
    )

    assert [each["kind"] for each in differences(found)].count("unexpected") == 1


@pytest.mark.engine
def test_a_window_that_moves_is_told_to_have_moved_and_differs_in_no_timestamp(
    tmp_path: Path,
) -> None:
    captured = capture(at(1, "p", {"temp": 5}), ends=100)

    found = replays_differ(tmp_path, WINDOW % 10, WINDOW % 20, captured)

    assert differences(found) == [{"kind": "moved", "at": "11s", "came_at": "21s"}]


def test_a_timestamp_of_another_moment_is_a_difference(tmp_path: Path) -> None:
    constant = "{type: constant, as: at, value: {type: text, value: '2026-03-02T06:00:0%dZ'}}"
    config = "- {id: p, inputs: [{type: http}], transforms: [{type: map, mappings: [%s]}]}\n"
    captured = capture(at(1, "p", {"temp": 5}), ends=100)

    found = replays_differ(tmp_path, config % constant % 1, config % constant % 2, captured)

    [difference] = differences(found)
    assert (difference["path"], difference["expected"]) == ("[0].at", "(its own moment)")
    assert "06:00:02" in difference["found"]


def test_paths_that_make_no_difference_are_left_out_through_lists_as_well(tmp_path: Path) -> None:
    constant = "{type: constant, as: host, value: {type: text, value: %s}}"
    config = "- {id: p, inputs: [{type: http}], transforms: [{type: map, mappings: [%s]}]}\n"
    captured = capture(at(1, "p", {"temp": 5}), ends=100)
    old, new = config % constant % "a", config % constant % "b"

    assert not replays_differ(tmp_path, old, new, captured).is_empty
    assert replays_differ(tmp_path, old, new, captured, ["host"]).is_empty


def test_fields_that_look_like_matchers_are_fields(tmp_path: Path) -> None:
    config = "- {id: p, inputs: [{type: http}]}\n"
    captured = capture(at(1, "p", {"$any": True}, {"$$x": {"$count": 3}}), ends=3)

    assert replays_differ(tmp_path, config, config, captured).is_empty


def test_servers_answer_as_they_did_to_the_same_content(tmp_path: Path) -> None:
    captured = capture(
        *readings(12, 20, 30),
        *(reply([{"temp": temp}], [{"temp": temp, "site": temp}]) for temp in (12, 20, 30)),
        ends=10,
    )

    found = replays_differ(tmp_path, ASKS % (10, "a"), ASKS % (15, "b"), captured)

    assert differences(found) == [
        {"kind": "missing", "at": "1s250ms", "expected": '{"temp": 12, "site": 12}'}
    ]
    assert found.unanswered == ()


def test_replies_come_in_turn_and_are_found_under_another_place(tmp_path: Path) -> None:
    config = "- {id: p, inputs: [{type: http}], transforms: [{type: http, url: 'http://h', verb: POST}]}\n"
    elsewhere = config.replace(
        "[{type: http, url", "[{type: splitter, out_size: 1}, {type: http, url"
    )
    captured = capture(
        *readings(1, 1, 1),
        *(reply([{"temp": 1}], [{"n": n}], of="p.transforms[0]") for n in (1, 2)),
        ends=10,
    )

    assert replays_differ(tmp_path, config, elsewhere, captured).is_empty
    assert replays_differ(tmp_path, config, elsewhere, captured).unanswered == ()


def test_what_has_no_reply_is_told_and_is_not_the_same(tmp_path: Path) -> None:
    config = ASKS % (10, "a")
    captured = capture(*readings(12, 20), reply([{"temp": 12}], []), ends=10)

    found = replays_differ(tmp_path, config, config, captured)

    assert not found.is_empty
    [told] = found.unanswered
    assert (told.of, told.count, told.first) == ("p.transforms[1]", 1, '[{"temp":20}]')
    assert "the capture has none to 1 requests" in "\n".join(replay_lines(found, "c.ndjson"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"status": 503, "body": None}, "503"),
        ({"status": None}, "connection refused"),
        ({"raw": "<html>"}, "not JSON"),
    ],
)
def test_failures_of_servers_come_again(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    captured = capture(*readings(12), reply([{"temp": 12}], [], **more), ends=10)
    if "raw" in more:
        told = captured.replies[0]
        assert told.reply.raw == b"<html>"

    found = replays_differ(tmp_path, ASKS % (10, "a"), ASKS % (99, "a"), captured)

    assert [(each.kind, each.before, each.after) for each in found.said][:1] == [("failures", 1, 0)]
    assert words in found.said[0].text


def test_what_neither_has_is_told(tmp_path: Path) -> None:
    config = FILTER % ("http", 10)

    found = replays_differ(
        tmp_path, config, config, capture(*readings(12), *readings(1, 2, to="q"), ends=10)
    )

    assert found.unplayed == (("q.inputs[0]", 2),)


def test_what_buckets_hold_at_the_end_is_compared(tmp_path: Path) -> None:
    config = """\
state: { machines: {} }
pipelines:
  - id: p
    state: { bucket: machines, key: m }
    inputs: [{type: http}]
    transforms: [{type: remember, remember: [{field: %s, as: kept}]}]
"""
    captured = capture(at(1, "p", {"m": "x", "a": 1, "b": 2}), ends=3)

    found = replays_differ(tmp_path, config % "a", config % "b", captured)

    assert [each.name for each in found.timelines] == ["state.machines"]
    assert differences(found)[0]["path"] == "x.kept"


def test_posts_that_are_not_taken_are_compared(tmp_path: Path) -> None:
    config = """\
- id: p
  inputs: [{type: http, capacity: %d}]
  transforms: [{type: http, url: "http://h", verb: POST}]
"""
    lines = [at(1, "p", {"n": number}) for number in range(60)]
    replies = [reply([{"n": number}], [], of="p.transforms[0]", seconds=20) for number in range(60)]

    found = replays_differ(tmp_path, config % 100, config % 1, capture(*lines, *replies, ends=9))

    refused = [each for each in found.said if each.kind == "refused"]
    assert [(each.place, each.before) for each in refused] == [("p", 0)]
    assert refused[0].after > 0


def test_the_config_whose_play_takes_too_many_moments_is_named(tmp_path: Path):
    old = "- {id: p, inputs: [{type: http}]}\n"
    new = "- {id: p, inputs: [{type: http}, {type: dummy, duration: 1}]}\n"
    captured = capture(at(1, "p", {}), ends=10_000)

    with pytest.raises(ReplayTooLong, match=r"new/config.yaml: timers were due at 108 moments"):
        replays_differ(tmp_path, old, new, captured, max_moments=8)


def test_paths_to_ignore_that_no_message_has_are_told(tmp_path: Path) -> None:
    config = FILTER % ("http", 10)
    captured = capture(at(1, "p", {"temp": 12, "rows": [{"a": 1}]}, {"temp": 20}), ends=3)

    ignored = ("rows", "rows.a", "rows.b", "temp", "temp", "Temp", "p.temp")
    found = replays_differ(tmp_path, config, config, captured, ignored)

    assert found.unfound == ("rows.b", "p.temp", "Temp")


def test_a_path_that_only_one_of_the_configs_gives_is_found(tmp_path: Path) -> None:
    old = FILTER % ("http", 10)
    copied = "{type: map, keep: all, mappings: [{type: copy, from: temp, as: high}]}"
    new = old.replace("}}]", f"}}}}, {copied}]")

    found = replays_differ(tmp_path, old, new, capture(*readings(12), ends=3), ["high"])

    assert (found.is_empty, found.unfound) == (True, ())
