"""Files of tests: each key, and each thing that can be wrong with one, where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.language.durations import END
from headrace.authoring.language.testfile import TestFile, TestFileShape, load_tests
from headrace.authoring.playing.scenario import Arriving, GivenArrival, GivenState
from headrace.compiler.describe.editors import record_schema
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.documents import read
from headrace.compiler.text.render import render
from tests.authoring.playing.playing import program

CONFIG = """
state: {last: {}}
pipelines:
  - id: w
    inputs: [{type: mqtt, connection: c, topic: t}]
    state: {bucket: last, key: id}
    transforms:
      - {type: http, url: "http://127.0.0.1:9/x", verb: POST}
      - {type: remember, remember: [{field: n, as: n}]}
    outputs: [{type: redis, connection: c, channel: t}]
  - id: two
    inputs: [{type: http}, {type: http2, connection: c, topic: t}]
  - id: r
    inputs: [{type: pipeline, upstream: w}]
  - id: d
    inputs: [{type: dummy, duration: 1}]
""".replace("type: http2", "type: mqtt")


def loaded(text: str, folder: Path | None = None) -> tuple[TestFile | None, list[Diagnostic]]:
    return load_tests(
        read(text.encode(), "c.tests.yaml", "yaml"), program(CONFIG), {"c": None}, folder
    )


def case(body: str, head: str = "", folder: Path | None = None) -> Any:
    """Return the one case of a file; nothing may be wrong with it."""
    file, said = loaded(f"{head}\ntests:\n  it works:\n{body}", folder)
    assert file is not None, render(said, style="plain")
    return file.cases[0]


def arrivals(found: Any) -> list[tuple[float, Any]]:
    return [(each.at, each.arriving and each.arriving.payload) for each in found.given]


def test_a_timeline_is_a_map_of_moments():
    found = case(
        "    given: {w: {0s: {n: 1}, +5s: [1, 2], +5s1ms: {$message: 3}, 1m: {$batch: [4]}}}"
    )

    assert arrivals(found) == [(0, [{"n": 1}]), (5, [1, 2]), (10.001, [3]), (60, [4])]
    assert {each.to for each in found.given} == {("w", 0)}
    assert found.until == 60


def test_a_timeline_is_a_list_where_a_moment_comes_twice():
    found = case("    given: {w: [{5s: 1}, {5s: 2}, {0s: 3}]}")

    assert arrivals(found) == [(0, [3]), (5, [1]), (5, [2])]


def test_a_timeline_is_a_line_of_marbles():
    found = case(
        "    given: {w: a-#b}\n    frame: 500ms",
        "messages: {a: 1, b: {$raw: no, $meta: {topic: x}}}",
    )

    assert found.given == (
        GivenArrival(0, ("w", 0), Arriving([1])),
        GivenArrival(1, ("w", 0), None),
        GivenArrival(1.5, ("w", 0), Arriving(b"no", {"topic": "x"})),
    )


def test_a_timeline_is_a_file_of_messages(tmp_path: Path):
    (tmp_path / "year.ndjson").write_text('{"n": 1}\n\n{"n": 2}\n')

    found = case("    given: {w: {$file: year.ndjson, $every: 1h, $from: 30m}}", folder=tmp_path)

    assert arrivals(found) == [(1800, [{"n": 1}]), (5400, [{"n": 2}])]


def test_a_bucket_can_be_given_and_expected():
    found = case(
        "    given: {state.last: {1s: {a: {n: 1}}}}\n    expect: {state.last: {2s: {a: {n: 1}}, end: {}}}"
    )

    assert found.given == (GivenState(1, "last", {"a": {"n": 1}}),)
    assert found.buckets == {"state.last": "last"}
    assert [each.at for each in found.expected["state.last"].moments] == [2, END]


def test_pipelines_and_components_can_be_expected():
    found = case("    expect: {w: {}, 'w.transforms[1]': {1s: 1}, 'w.outputs[0]': {end: 1}}")

    assert found.handed_on == {"w": "w"}
    assert found.components == {
        "w.transforms[1]": ("w", "transform", 1),
        "w.outputs[0]": ("w", "output", 0),
    }


def test_an_input_is_named_where_there_are_several():
    found = case("    given: {'two.inputs[1]': {0s: 1}}")

    assert [each.to for each in found.given] == [("two", 1)]


def test_failures_warnings_and_refusals_are_expected_in_words():
    found = case(
        "    expect:\n"
        "      failures: [{at: 'w.outputs[0]', says: gone, times: 2}]\n"
        "      warnings: []\n"
        "      refused: {two: 3}"
    )

    [words] = found.words["failures"]
    assert (words.said.at, words.said.says, words.said.times) == ("w.outputs[0]", "gone", 2)
    assert found.words["warnings"] == ()
    assert found.refused == {"two": 3}


def test_a_list_of_replies_is_used_up_in_turn():
    found = case(
        "    replies: {'w.transforms[0]': [503, {$echo: {b: 2}, $after: 5s}, down, {$body: [1]}]}"
    )

    answer = found.answers()["w", 0]
    assert answer([]).status == 503
    echoed = answer([{"a": 1}])
    assert (echoed.body, echoed.after) == ([{"a": 1, "b": 2}], 5)
    assert answer([]).is_down
    assert answer([]).body == [1]
    assert answer([]) == "the test has 4 replies for it, and this is one request more"


def test_one_reply_answers_every_time():
    answer = case("    replies: {'w.transforms[0]': 404}").answers()["w", 0]

    assert [answer([]).status for _ in range(3)] == [404] * 3


def test_a_connection_is_everything_that_names_it():
    found = case(
        "    faults: {connections.c: {2m..12m: down, 15m..: down}, 'w.outputs[0]': {0s..1s: slow 2s}}"
    )

    assert {at: len(spans) for at, spans in found.outages.items()} == {
        ("w", "input", 0): 2,
        ("two", "input", 1): 2,
        ("w", "output", 0): 3,
    }
    slow = found.outages["w", "output", 0][-1]
    assert (slow.kind, slow.begins, slow.ends, slow.seconds) == ("slow", 0, 1, 2)


def test_a_server_refuses_so_many_of_so_many():
    found = case("    faults: {'w.outputs[0]': {0s..: refuses 1/3}}")

    [refuses] = found.outages["w", "output", 0]
    assert (refuses.kind, refuses.refused, refuses.of) == ("refuses", 1, 3)


def test_the_wall_can_be_said_and_tests_have_tags_and_reasons_to_be_skipped():
    file, _ = loaded(
        "start: 2026-03-02T07:00:00+01:00\n"
        "tests: {a: {given: {w: {0s: 1}}, expect: {w: {}}, tags: [slow], skip: not yet, until: 5m}}"
    )

    assert file is not None
    [only] = file.cases
    assert file.start.isoformat() == "2026-03-02T07:00:00+01:00"
    assert (only.shape.tags, only.shape.skip, only.until) == (("slow",), "not yet", 300)


WRONG = [
    ("given: {w: {end: 1}}", "3:17", "past-the-end", "nothing can be given at the end"),
    (
        "given: {w: 5}",
        "3:16",
        "wrong-type",
        "expected a map of moments, a list of such maps, or a line of marbles",
    ),
    ("given: {w: [5]}", "3:17", "wrong-type", "expected an object with one moment"),
    ("given: {w: x}", "3:16", "not-marbles", "nothing is called 'x'"),
    ("given: {w: {0s: {$massage: 1}}}", "3:22", "unknown-key", "unknown key '$massage'"),
    ("given: {w: {0s: {$message: 1, $raw: x}}}", "3:21", "conflict", "expected exactly one of"),
    (
        "given: {w: {0s: {$message: 1, $meta: {qss: 1}}}}",
        "3:43",
        "unknown-metadata",
        "an input of type 'mqtt' tells",
    ),
    (
        "given: {'two.inputs[0]': {0s: {$raw: x}}}",
        "3:36",
        "conflict",
        "what arrives at an input of type 'http' has been",
    ),
    ("given: {v: {0s: 1}}", "3:13", "unknown-pipeline", "there is no pipeline 'v'"),
    ("given: {two: {0s: 1}}", "3:13", "ambiguous", "'two' has 2 inputs"),
    (
        "given: {r: {0s: 1}}",
        "3:13",
        "not-an-input",
        "an input of type 'pipeline' is fed by its upstream",
    ),
    (
        "given: {d: {0s: 1}}",
        "3:13",
        "not-an-input",
        "an input of type 'dummy' makes its messages itself",
    ),
    (
        "given: {'two.inputs[0]': '#'}",
        "3:31",
        "not-an-input",
        "'two.inputs[0]' has no connection to lose",
    ),
    ("given: {'w.inputs[3]': {0s: 1}}", "3:13", "unknown-pipeline", "'w' has 1 input"),
    ("given: {state.lost: {0s: {}}}", "3:13", "unknown-bucket", "there is no bucket 'lost'"),
    ("given: {state.last: {0s: 1}}", "3:30", "wrong-type", "expected an object of keys"),
    ("given: {w: {$file: no.ndjson}}", "3:24", "missing-file", 'there is no file "no.ndjson"'),
    ("expect: {w: {0s: {$anny: 1}}}", "3:23", "not-a-matcher", "there is no matcher '$anny'"),
    (
        "expect: {'w.inputs[0]': {0s: 1}}",
        "3:14",
        "not-an-input",
        "what arrives at 'w.inputs[0]' is given",
    ),
    (
        "expect: {failures: gone}",
        "3:24",
        "wrong-type",
        "expected a list of objects with 'at' and 'says'",
    ),
    ("expect: {failures: [{at: w}]}", "3:25", "missing-key", "this key is required"),
    ("expect: {refused: {two: many}}", "3:29", "wrong-type", "expected how many posts are refused"),
    (
        "expect: {lost: 1}",
        "3:20",
        "wrong-type",
        "expected an object of amounts by component, or {} for none, found 1",
    ),
    (
        "replies: {'w.transforms[1]': 200}",
        "3:15",
        "unknown-pipeline",
        "'w.transforms[1]' asks no server",
    ),
    (
        "replies: {'w.transforms[0]': 99}",
        "3:34",
        "out-of-range",
        "expected a status from 100 to 599",
    ),
    ("replies: {'w.transforms[0]': {$bdy: 1}}", "3:35", "unknown-key", "unknown key '$bdy'"),
    ("replies: {'w.transforms[0]': up}", "3:34", "wrong-type", "expected a status, 'down', or"),
    (
        "faults: {connections.b: {0s..: down}}",
        "3:14",
        "unknown-connection",
        "no input and no output names a connection 'b'",
    ),
    (
        "faults: {'two.inputs[0]': {0s..: down}}",
        "3:14",
        "not-an-input",
        "an input of type 'http' has no server",
    ),
    (
        "faults: {'w.outputs[0]': {0s: down}}",
        "3:31",
        "not-a-time",
        "expected a span such as 2m..12m",
    ),
    (
        "faults: {'w.outputs[0]': {2s..1s: down}}",
        "3:31",
        "not-a-time",
        "expected a span such as 2m..12m",
    ),
    (
        "faults: {'w.outputs[0]': {0s..: off}}",
        "3:37",
        "not-a-fault",
        "expected down, slow with a duration",
    ),
    ("faults: {'w.inputs[0]': {0s..: slow 2s}}", "3:36", "not-a-fault", "expected down: an input"),
    (
        "given: {w: {90s: 1}}\n    until: 1m",
        "3:17",
        "past-the-end",
        "this is after the end of the test",
    ),
    ("until: soon", "3:12", "not-a-time", "expected a duration such as"),
    ("frame: 0s", "3:12", "out-of-range", "expected a duration above 0s"),
    ("giwen: {}", "3:5", "unknown-key", "unknown key 'giwen'"),
]


@pytest.mark.parametrize(
    ("body", "place", "code", "message"), WRONG, ids=[each[0] for each in WRONG]
)
def test_what_is_wrong_is_told_where_it_is(
    body: str, place: str, code: str, message: str, tmp_path: Path
):
    file, said = loaded(f"tests:\n  it works:\n    {body}\n", tmp_path)

    [fault] = [each for each in said if each.code != "checks-nothing"]
    assert file is None
    assert (f"{fault.line}:{fault.column}", fault.code) == (place, code)
    assert fault.message.startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "tests: 5",
        "tests: {a: 5}",
        "tests: {a: {given: 5, expect: [], faults: x}}",
        "tests: {a: {expect: {w: null}}}",
        "messages: 5\ntests: {}",
        "start: soon\ntests: {}",
        "tests: {__proto__: {given: {__proto__: 1}}}",
        "[]",
    ],
)
def test_whatever_is_there_is_refused_with_a_place(text: str):
    file, said = loaded(text)

    assert file is None
    assert all(each.line for each in said)


def test_what_is_no_test_at_all_is_told_once():
    _, said = loaded("tests: {a: 5}")

    assert [each.code for each in said] == ["wrong-type"]


def test_a_line_that_is_not_json_is_told_with_its_number(tmp_path: Path):
    (tmp_path / "a.ndjson").write_text('{"n": 1}\n{"n":\n')

    _, said = loaded("tests: {a: {given: {w: {$file: a.ndjson}}}}", tmp_path)

    fault = said[-1]
    assert (fault.file, fault.line) == ("a.ndjson", 2)


def test_a_test_that_expects_nothing_and_a_name_that_nobody_uses_are_odd():
    file, said = loaded("messages: {a: 1}\ntests: {it: {given: {w: {0s: 1}}}}")

    assert file is not None
    assert [(each.code, each.severity) for each in said] == [
        ("never-used", "warning"),
        ("checks-nothing", "warning"),
    ]


def test_editors_get_a_schema():
    schema = record_schema(TestFileShape, "headrace tests")

    assert [*schema["properties"]] == ["config", "start", "messages", "tests"]
    assert "Timelines of what arrives" in str(schema)
    assert "killed before commit 1" in str(schema)
    assert "Dead letters that are there at the end" in str(schema)


def test_a_reply_for_what_nothing_comes_to_is_odd():
    text = """
tests:
  it:
    given: { "PIPELINE.inputs[0]": { 0s: 1 } }
    replies: { "w.transforms[0]": 200 }
    expect: { r: {} }
"""

    _, odd = loaded(text.replace("PIPELINE", "two"))
    _, fine = loaded(text.replace("PIPELINE", "w"))

    assert [(each.code, each.path, each.message) for each in odd] == [
        (
            "never-used",
            'tests.it.replies["w.transforms[0]"]',
            "nothing comes to 'w' in this test, so nobody is answered",
        )
    ]
    assert fine == []
