"""Redaction of captures: equal values stay equal, and nothing of them is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.runtime.capturing.captures import CaptureRequest
from headrace.compiler.runtime.capturing.capturewriting import LARGE
from headrace.compiler.runtime.capturing.redactor import Redactor
from tests.compiler.runtime.capturing.capturing import text_of
from tests.stand_ins import RawTold, Told, batches, engine, pipeline, reads, run
from tests.virtual import virtual


def shown(*messages: Any, paths: Sequence[str] = ("name",)) -> Any:
    """Return what is shown of a batch."""
    return json.loads(b"".join(Redactor(paths).pieces([*messages])))


def test_equal_texts_have_the_same_digits_and_others_have_others() -> None:
    first, second, third = shown(*({"name": each} for each in ("Ann", "Bo", "Ann")))

    assert first == third != second
    assert len(first["name"]) == 8
    assert int(first["name"], 16) >= 0


def test_two_captures_have_nothing_in_common() -> None:
    assert shown({"name": "Ann"}) != shown({"name": "Ann"})


@pytest.mark.parametrize(
    "message",
    [
        {"patient": {"name": "Ann"}},
        {"patient": [{"name": "Ann"}, {"name": "Ann"}]},
        {"patient.name": "Ann"},
        [{"patient": {"name": ["Ann", {"first": "Ann"}]}}],
    ],
)
def test_no_way_that_a_path_may_lead_is_left_out(message: Any) -> None:
    [found] = shown(message, paths=["patient.name"])

    assert "Ann" not in json.dumps(found)
    assert "Ann" in json.dumps(message)  # which others have as well


def test_types_and_keys_stay() -> None:
    message = {"x": {"n": 1234567, "f": 1.5, "t": True, "o": None, "s": "text", "l": [7, 7, 8]}}

    found = shown(message, paths=["x"])[0]["x"]

    assert [type(each) for each in found.values()] == [int, float, bool, type(None), str, list]
    assert found["l"][0] == found["l"][1] != found["l"][2]
    assert (found["n"], found["f"], found["s"]) != (1234567, 1.5, "text")


def test_a_lone_surrogate_has_its_digits_as_well() -> None:
    assert len(shown({"name": "\ud800"})[0]["name"]) == 8


@virtual
async def test_a_payload_that_is_no_json_is_not_shown_and_stays_none() -> None:
    it = engine()
    bodies = [b"Ann: 5", b"Ann: 5", b"Bo \xff", b"1e400"]
    script = [1, [(each, None) for each in bodies]]
    await run(it, pipeline("p", [reads(RawTold(it.clock, script))]))

    text = await text_of(it.capture(CaptureRequest(seconds=2, redact=["name"])))

    first, second, third, fourth = [json.loads(line)["raw"] for line in text.splitlines()[1:-1]]
    assert first == second
    assert len({first, third, fourth}) == 3
    assert all(each.startswith("not JSON ") for each in (first, third, fourth))
    assert not any(each in text for each in (b"Ann", b"Bo ", b"1e400"))
    await it.close()


def test_of_metadata_a_path_of_its_own_is_hidden() -> None:
    redactor = Redactor(["$meta.remote_addr", "name"])

    told = json.loads(redactor.metadata({"remote_addr": "192.0.2.7:1", "name": "kept"}))

    assert told["name"] == "kept"
    assert len(told["remote_addr"]) == 8


@virtual
async def test_what_is_large_is_redacted_as_well() -> None:
    it = engine()
    many = [{"name": f"Ann{number % 3}", "pad": "x" * 150} for number in range(LARGE_BATCH + 1)]
    payload = json.dumps(many).encode()
    single = json.dumps({"name": "Ann1", "pad": "x" * LARGE}).encode()
    assert len(payload) > LARGE
    script = [1, [(payload, None), (single, None)]]
    await run(it, pipeline("raw", [reads(RawTold(it.clock, script))]))
    await run(it, pipeline("made", [reads(Told(it.clock, [2, batches(many)]))]))

    text = await text_of(it.capture(CaptureRequest(seconds=5, redact=["name"])))

    assert b"Ann" not in text
    lines = [json.loads(line) for line in text.splitlines()[1:-1]]
    [listed], [alone], made = (each["batch"] for each in lines)
    names = [each["name"] for each in listed]
    assert len({*names}) == 3
    assert alone["name"] == names[1]
    assert [each["name"] for each in made] == names
    await it.close()


def test_what_no_path_leads_to_is_as_it_was() -> None:
    messages = [
        *(1, "x", None, [], {}, [[], {"other": [1, {"name2": "kept"}]}], 1.5, True),
        {"": {"": 1}, "patient": 3, "list": [*range(3000)], "text": "\u0001é" * 300_000},
    ]

    assert shown(*messages, paths=["patient.name", "name"]) == messages


def test_a_path_of_very_many_segments_is_looked_up_as_messages_need_it() -> None:
    path = ".".join("a" * 200)

    assert shown({"a": {"a.a": "kept"}}, paths=[path]) == [{"a": {"a.a": "kept"}}]
    assert shown({path: "Ann"}, paths=[path])[0][path] != "Ann"


def test_a_path_whose_names_are_the_same_is_found_whichever_way_a_message_goes() -> None:
    message: Any = "Ann"
    for key in ("a.a", "a", "a.a.a", "a.a"):
        message = {key: message}

    [found] = shown(message, paths=[".".join("a" * 8)])

    assert "Ann" not in json.dumps(found)
